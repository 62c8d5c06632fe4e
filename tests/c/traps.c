/* traps DIR: what recorders trip over: wildcards without status, requests that share a handle, persistent requests, matched
 * probes, errors returned, communicators freed and made anew, fork. Checks what it receives, so that a recorder that
 * disturbs it is noticed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static int r,n;
#define CK(x) do{ if(!(x)){fprintf(stderr,"rank %d line %d: " #x "\n",r,__LINE__); MPI_Abort(MPI_COMM_WORLD,9);} }while(0)
int main(int c,char**v){
  int prov;
  MPI_Init_thread(&c,&v,MPI_THREAD_SINGLE,&prov); MPI_Comm_rank(MPI_COMM_WORLD,&r); MPI_Comm_size(MPI_COMM_WORLD,&n);
  int L=(r+n-1)%n,R=(r+1)%n;
  {
    double a[8]={r},b[8]; MPI_Status st; MPI_Request q[4];
    /* wildcards with IGNORE */
    MPI_Irecv(b,8,MPI_DOUBLE,MPI_ANY_SOURCE,MPI_ANY_TAG,MPI_COMM_WORLD,q); MPI_Send(a,3,MPI_DOUBLE,R,11,MPI_COMM_WORLD); MPI_Wait(q,MPI_STATUS_IGNORE); CK(q[0]==MPI_REQUEST_NULL);
    MPI_Irecv(b,8,MPI_DOUBLE,MPI_ANY_SOURCE,12,MPI_COMM_WORLD,q); MPI_Isend(a,3,MPI_DOUBLE,R,12,MPI_COMM_WORLD,q+1); q[2]=MPI_REQUEST_NULL; MPI_Waitall(3,q,MPI_STATUSES_IGNORE); CK(b[0]==L);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request s; MPI_Isend(a,1,MPI_DOUBLE,R,13,MPI_COMM_WORLD,&s); MPI_Recv(b,8,MPI_DOUBLE,MPI_ANY_SOURCE,MPI_ANY_TAG,MPI_COMM_WORLD,MPI_STATUS_IGNORE); MPI_Wait(&s,&st);
    /* waitany waitsome testall persistent with any source */
    MPI_Recv_init(b,8,MPI_DOUBLE,MPI_ANY_SOURCE,14,MPI_COMM_WORLD,q); MPI_Ssend_init(a,2,MPI_DOUBLE,R,14,MPI_COMM_WORLD,q+1);
    for(int k=0;k<3;k++){ MPI_Startall(2,q); int done=0,i,f,o,idx[2]; if(k==0){ while(done<2){MPI_Waitany(2,q,&i,&st); done++; if(i==0)CK(st.MPI_SOURCE==L);} MPI_Waitany(2,q,&i,&st); CK(i==MPI_UNDEFINED);} else if(k==1){ while(done<2){MPI_Waitsome(2,q,&o,idx,MPI_STATUSES_IGNORE); done+=o;} } else { do MPI_Testall(2,q,&f,MPI_STATUSES_IGNORE); while(!f);} }
    MPI_Request_free(q); MPI_Request_free(q+1);
    /* PROC_NULL, zero counts */
    MPI_Send(a,1,MPI_DOUBLE,MPI_PROC_NULL,1,MPI_COMM_WORLD); MPI_Recv(b,1,MPI_DOUBLE,MPI_PROC_NULL,1,MPI_COMM_WORLD,&st); CK(st.MPI_SOURCE==MPI_PROC_NULL);
    MPI_Irecv(b,1,MPI_DOUBLE,MPI_PROC_NULL,1,MPI_COMM_WORLD,q); MPI_Isend(b,1,MPI_DOUBLE,MPI_PROC_NULL,1,MPI_COMM_WORLD,q+1); MPI_Waitall(2,q,MPI_STATUSES_IGNORE);
    MPI_Sendrecv(0,0,MPI_DOUBLE,R,15,0,0,MPI_DOUBLE,MPI_ANY_SOURCE,15,MPI_COMM_WORLD,MPI_STATUS_IGNORE);
    /* matched */
    MPI_Message msg; MPI_Isend(a,4,MPI_DOUBLE,R,16,MPI_COMM_WORLD,&s); MPI_Mprobe(MPI_ANY_SOURCE,16,MPI_COMM_WORLD,&msg,MPI_STATUS_IGNORE); MPI_Mrecv(b,8,MPI_DOUBLE,&msg,&st); MPI_Wait(&s,MPI_STATUS_IGNORE);
    MPI_Isend(a,4,MPI_DOUBLE,R,17,MPI_COMM_WORLD,&s); int f; do MPI_Improbe(L,17,MPI_COMM_WORLD,&f,&msg,&st); while(!f); MPI_Imrecv(b,8,MPI_DOUBLE,&msg,q); MPI_Wait(q,&st); MPI_Wait(&s,&st);
    /* errors returned */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,MPI_ERRORS_RETURN); CK(MPI_Send(a,1,MPI_DOUBLE,n+5,1,MPI_COMM_WORLD)!=MPI_SUCCESS);
    MPI_Isend(a,8,MPI_DOUBLE,R,18,MPI_COMM_WORLD,&s); CK(MPI_Recv(b,1,MPI_DOUBLE,L,18,MPI_COMM_WORLD,&st)!=MPI_SUCCESS); MPI_Wait(&s,&st);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(b,1,MPI_DOUBLE,L,19,MPI_COMM_WORLD,q); MPI_Irecv(b+1,1,MPI_DOUBLE,L,20,MPI_COMM_WORLD,q+1); MPI_Isend(a,8,MPI_DOUBLE,R,19,MPI_COMM_WORLD,q+2); MPI_Isend(a,1,MPI_DOUBLE,R,20,MPI_COMM_WORLD,q+3);
    MPI_Status ss[4]; int e=MPI_Waitall(4,q,ss),cl; MPI_Error_class(e,&cl); CK(e!=MPI_SUCCESS); if(cl==MPI_ERR_IN_STATUS){ CK(ss[0].MPI_ERROR!=MPI_SUCCESS);} for(int i=0;i<4;i++) if(q[i]!=MPI_REQUEST_NULL) MPI_Wait(q+i,MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,MPI_ERRORS_ARE_FATAL);
    /* comms: idup, reuse, split undefined */
    MPI_Comm d; MPI_Comm_idup(MPI_COMM_WORLD,&d,&s); MPI_Wait(&s,&st); MPI_Barrier(d); MPI_Comm_free(&d);
    for(int k=0;k<3;k++){ MPI_Comm_split(MPI_COMM_WORLD,r==0?MPI_UNDEFINED:1,-r,&d); if(d!=MPI_COMM_NULL){MPI_Barrier(d);MPI_Comm_free(&d);} MPI_Comm_split(MPI_COMM_WORLD,r&1,r,&d); MPI_Barrier(d); MPI_Comm_free(&d);}
    int y[2]={1,2},z[2]; MPI_Iallreduce(y,z,2,MPI_INT,MPI_SUM,MPI_COMM_WORLD,&s); MPI_Wait(&s,MPI_STATUS_IGNORE); CK(z[0]==n);
    int *cnt=calloc(n,4),*dis=calloc(n,4),*ib=calloc(n*n,4); for(int i=0;i<n;i++){cnt[i]=1;dis[i]=i;} MPI_Alltoallv(MPI_IN_PLACE,0,0,MPI_INT,ib,cnt,dis,MPI_INT,MPI_COMM_WORLD); MPI_Allgather(MPI_IN_PLACE,0,MPI_DATATYPE_NULL,ib,1,MPI_INT,MPI_COMM_WORLD);
    MPI_Win w; MPI_Win_create(ib,4*n,4,MPI_INFO_NULL,MPI_COMM_WORLD,&w); MPI_Win_fence(0,w); MPI_Put(y,1,MPI_INT,R,0,1,MPI_INT,w); MPI_Win_fence(0,w); MPI_Win_free(&w);
    MPI_File fh; char fn[4096]; sprintf(fn,"%s/file.%d",v[1],r); MPI_File_open(MPI_COMM_SELF,fn,MPI_MODE_CREATE|MPI_MODE_RDWR,MPI_INFO_NULL,&fh); MPI_File_write(fh,a,8,MPI_DOUBLE,&st); MPI_File_close(&fh);
    MPI_Datatype t0; MPI_Type_contiguous(0,MPI_INT,&t0); MPI_Type_commit(&t0); MPI_Bcast(a,3,t0,0,MPI_COMM_WORLD); MPI_Type_free(&t0);
    { pid_t p=fork(); if(!p){ _exit(0);} int ws; waitpid(p,&ws,0); p=fork(); if(!p){ execlp("echo","echo","child",(char*)0);} waitpid(p,&ws,0); }
  }
  MPI_Finalize(); if(r==0) puts("fine"); return 0; }
