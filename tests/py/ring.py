"""Messages of every kind that mpi4py has: pickled objects, buffers, wildcards, collectives. Prints what came out."""
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size

request = world.isend({"rank": rank, "data": list(range(100))}, right, tag=1)
got = world.recv(source=MPI.ANY_SOURCE, tag=1)
request.wait()

out, into = bytearray(1000), bytearray(2000)
requests = [world.Irecv(into, left, 2), world.Isend(out, right, 2)]
MPI.Request.Waitall(requests)
status = MPI.Status()
world.Sendrecv([out, 10, MPI.DOUBLE], right, 3, into, left, 3, status)

half = world.Split(rank % 2, rank)
total = half.allreduce(rank)
everything = world.allgather(total)
into = bytearray(8 * size)
world.Alltoall([bytearray(8 * size), MPI.BYTE], [into, MPI.BYTE])
world.Barrier()
half.Free()
if rank == 0:
    print(got["rank"], sum(got["data"]), status.Get_count(MPI.DOUBLE), everything)
