/* Of random.c: what MPICH's own suite has and the rest of random.c has not, and communicators between groups. Each class says "# NAME", so that
 * they can be counted. */
#include "between_groups.h"

static void begin_class(thread *t, const char *name)
{
    say(t, "# %s", name);
}

/* A message from each member to the next, and whatever else completes with it. */
static void send_to_next(thread *t, MPI_Comm comm, MPI_Datatype type, int bytes, int others, MPI_Request *q)
{
    static __thread char out[256], in[256];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    say_recv(t, comm, (rank + size - 1) % size, t->tag, bytes);
    MPI_Irecv(in, 1, type, (rank + size - 1) % size, t->tag, comm, q + others);
    send(t, 0, out, 1, type, bytes, (rank + 1) % size, t->tag, comm, q + others + 1);
    complete(t, others + 2, q);
}

/* The copy callback makes a communicator, the delete callback frees it. */
static int copy_by_dup(MPI_Comm comm, int key, void *extra, void *value, void *made, int *flag)
{
    thread *t = extra;
    MPI_Comm *copy = malloc(sizeof *copy);
    (void)comm, (void)key, (void)value;
    MPI_Comm_dup(MPI_COMM_SELF, copy);
    say(t, "comm 1");
    *(void **)made = copy;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_by_free(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key;
    say(extra, "free");
    int code = MPI_Comm_free(value);
    free(value);
    return code;
}

static void attributes_of_communicators(thread *t)
{
    int key, flag, size, rounds = 1 + draw(t, 3);
    MPI_Comm made, *value = malloc(sizeof *value), *found;
    begin_class(t, "attributes of communicators");
    MPI_Comm_size(t->comms[0], &size);
    MPI_Comm_create_keyval(copy_by_dup, delete_by_free, &key, t);
    MPI_Comm_dup(MPI_COMM_SELF, value);
    say(t, "comm 1");
    MPI_Comm_set_attr(t->comms[0], key, value);
    for (int round = 0; round < rounds; round++) {
        MPI_Comm_dup(t->comms[0], &made);
        say(t, "comm %d", size);
        MPI_Comm_get_attr(made, key, &found, &flag);
        CHECK(flag && found != value);
        say(t, "coll Barrier 1 -1");
        MPI_Barrier(*found);
        say(t, "free");
        MPI_Comm_free(&made);
    }
    MPI_Comm_delete_attr(t->comms[0], key);
    MPI_Comm_free_keyval(&key);
}

static __thread int deleted;

/* The copy callback of a datatype sends to itself. */
static int copy_by_message(MPI_Datatype type, int key, void *extra, void *value, void *made, int *flag)
{
    thread *t = extra;
    int rank, out = 7, in = 0, tag = t->tag;
    (void)type, (void)key;
    MPI_Comm_rank(t->comms[0], &rank);
    say(t, "send %d %d 4 standard", world_rank_of(t->comms[0], rank), tag);
    say_recv(t, t->comms[0], rank, tag, 4);
    MPI_Sendrecv(&out, 1, MPI_INT, rank, tag, &in, 1, MPI_INT, rank, tag, t->comms[0], MPI_STATUS_IGNORE);
    CHECK(in == 7);
    *(void **)made = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int count_deletion(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void attributes_of_datatypes(thread *t)
{
    int key;
    MPI_Datatype type, copy;
    MPI_Request q[2];
    begin_class(t, "attributes of datatypes");
    deleted = 0;
    MPI_Type_create_keyval(copy_by_message, count_deletion, &key, t);
    MPI_Type_contiguous(1 + draw(t, 4), MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, t);
    MPI_Type_dup(type, &copy);
    int bytes;
    MPI_Type_size(copy, &bytes);
    MPI_Type_free(&type);
    send_to_next(t, t->comms[0], copy, bytes, 0, q);
    MPI_Type_free(&copy);
    CHECK(deleted == 2);
    MPI_Type_free_keyval(&key);
}

static int query_request(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 1);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int free_request(void *extra)
{
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static int cancel_request(void *extra, int is_complete)
{
    (void)extra, (void)is_complete;
    return MPI_SUCCESS;
}

/* Complete, among requests of messages. */
static void generalized_requests(thread *t)
{
    int freed = 0, count = 1 + draw(t, 3);
    MPI_Request q[5];
    begin_class(t, "generalized requests");
    for (int i = 0; i < count; i++) {
        MPI_Grequest_start(query_request, free_request, cancel_request, &freed, q + i);
        MPI_Grequest_complete(q[i]);
    }
    send_to_next(t, t->comms[0], MPI_INT, 4, count, q);
    CHECK(freed == count);
}

/* Datatypes, requests and communicators, one after the other, so that each has the handle of the one before. */
static void reused_handles(thread *t)
{
    int size, rounds = 2 + draw(t, 4);
    begin_class(t, "reused handles");
    MPI_Comm_size(t->comms[0], &size);
    for (int round = 0; round < rounds; round++) {
        MPI_Datatype type;
        MPI_Comm made;
        MPI_Request q[2];
        if (round % 2) MPI_Type_contiguous(1 + round, MPI_INT, &type);
        else MPI_Type_vector(1 + round, 1, 2, MPI_INT, &type);
        MPI_Type_commit(&type);
        if (draw(t, 2)) MPI_Comm_dup(t->comms[0], &made);
        else MPI_Comm_split(t->comms[0], 0, 0, &made);
        say(t, "comm %d", size);
        send_to_next(t, made, type, 4 * (1 + round), 0, q);
        say(t, "free");
        MPI_Comm_free(&made);
        MPI_Type_free(&type);
    }
}

static void disconnected(thread *t)
{
    int size;
    MPI_Comm made;
    MPI_Request q[2];
    begin_class(t, "MPI_Comm_disconnect");
    MPI_Comm_size(t->comms[0], &size);
    MPI_Comm_dup(t->comms[0], &made);
    say(t, "comm %d", size);
    send_to_next(t, made, MPI_DOUBLE, 8, 0, q);
    say(t, "free");
    MPI_Comm_disconnect(&made);
    CHECK(made == MPI_COMM_NULL);
}

/* Without a server of names, MPICH returns errors. The calls have no events. */
static void name_service(thread *t)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "", name[64];
    begin_class(t, "name service");
    snprintf(name, sizeof name, "vef.random.%d.%d", world_rank, t->tag);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int opened = MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS;
    if (opened) {
        if (MPI_Publish_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS) {
            if (MPI_Lookup_name(name, MPI_INFO_NULL, found) == MPI_SUCCESS) CHECK(!strcmp(port, found));
            MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        }
        MPI_Close_port(port);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* MPICH 4.0 crashes when the tool interface is used again after MPI_T_finalize. */
static int has_tool_interface;

static void tool_interface(thread *t)
{
    int provided, count, length = 256, described = 256, verbosity, binding, scope;
    char name[256], text[256];
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_pvar_session session;
    begin_class(t, "MPI_T");
    CHECK(has_tool_interface || MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    has_tool_interface = 1;
    MPI_T_cvar_get_num(&count);
    for (int i = 0; i < count && i < 20; i++) {
        length = described = 256;
        MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &values, text, &described, &binding, &scope);
    }
    MPI_T_pvar_get_num(&count);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    MPI_T_pvar_session_free(&session);
    MPI_T_category_get_num(&count);
}

static void info_objects(thread *t)
{
    MPI_Info info, copy;
    MPI_Comm made;
    MPI_Request q[2];
    char value[16], key[MPI_MAX_INFO_KEY];
    int flag, keys, size;
    begin_class(t, "info");
    MPI_Info_create(&info);
    MPI_Info_set(info, "one", "1");
    MPI_Info_set(info, "two", "2");
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(copy, &keys);
    MPI_Info_get_nthkey(copy, 0, key);
    MPI_Info_get(copy, "one", sizeof value - 1, value, &flag);
    CHECK(keys == 2 && flag && !strcmp(value, "1"));
    MPI_Comm_size(t->comms[0], &size);
    MPI_Comm_dup_with_info(t->comms[0], copy, &made);
    say(t, "comm %d", size);
    MPI_Comm_set_info(made, info);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    MPI_Comm_get_info(made, &info);
    MPI_Info_free(&info);
    send_to_next(t, made, MPI_INT, 4, 0, q);
    say(t, "free");
    MPI_Comm_free(&made);
}

/* May call MPI, but not communicate. */
static void add_by_calls(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes, rank;
    MPI_Type_size(*type, &bytes);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(bytes == 4 && rank == world_rank && MPI_Wtime() >= 0);
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void user_operations(thread *t)
{
    static __thread int in[64], out[64];
    int size, n = 1 + draw(t, 60), way = draw(t, 5);
    MPI_Op op;
    MPI_Request q;
    MPI_Comm comm = t->comms[0];
    begin_class(t, "user operations");
    MPI_Comm_size(comm, &size);
    MPI_Op_create(add_by_calls, draw(t, 2), &op);
    for (int i = 0; i < n; i++) in[i] = 1, out[i] = 0;
    MPI_Reduce_local(in, out, n, MPI_INT, op);
    CHECK(out[n - 1] == 1);
    static const char *const names[] = { "Allreduce", "Reduce", "Scan", "Allreduce", "Reduce_scatter_block" };
    say(t, "coll %s %d %d", names[way], size, way == 1 ? 0 : -1);
    switch (way) {
    case 0: MPI_Allreduce(in, out, n, MPI_INT, op, comm); break;
    case 1: MPI_Reduce(in, out, n, MPI_INT, op, 0, comm); break;
    case 2: MPI_Scan(in, out, n, MPI_INT, op, comm); break;
    case 3: MPI_Iallreduce(in, out, n, MPI_INT, op, comm, &q), complete(t, 1, &q); break;
    default: MPI_Reduce_scatter_block(in, out, n / size, MPI_INT, op, comm); break;
    }
    CHECK(way == 1 || way == 2 || n < size || out[0] == size);
    MPI_Op_free(&op);
}

/* Partitions from each member to the next, in one or two transfers that are started several times; the ends have different numbers of partitions. */
static void partitioned(thread *t)
{
    begin_class(t, "partitioned");
#ifdef OPEN_MPI
    if (threads > 1) return; /* Open MPI 5.0 hangs */
#endif
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    enum { WHOLE = 24 };
    static const int divisors[] = { 1, 2, 3, 4, 6, 8, 12, 24 };
    static __thread int out[2][WHOLE], in[2][WHOLE];
    MPI_Comm comm = choose(t);
    int rank, size, order[WHOLE], transfers = 1 + draw(t, 2), rounds = 1 + draw(t, 3), shift = draw(t, 4), flag;
    int sent[2] = { divisors[draw(t, 8)], divisors[draw(t, 8)] }, received[2] = { divisors[draw(t, 8)], divisors[draw(t, 8)] };
    MPI_Request q[4];
    if (comm == MPI_COMM_NULL) return;
#ifdef OPEN_MPI
    transfers = 1; /* with two at the same time, Open MPI 5.0 hangs */
#endif
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int to = (rank + shift) % size, from = (rank + size - shift % size) % size;
    for (int i = 0; i < transfers; i++) {
        MPI_Psend_init(out[i], sent[i], WHOLE / sent[i], MPI_INT, to, t->tag, comm, MPI_INFO_NULL, q + i);
        MPI_Precv_init(in[i], received[i], WHOLE / received[i], MPI_INT, from, t->tag, comm, MPI_INFO_NULL, q + transfers + i);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < transfers; i++)
            for (int k = 0; k < WHOLE; k++) out[i][k] = t->tag + i + round, in[i][k] = -1;
        if (draw(t, 2)) MPI_Startall(2 * transfers, q);
        else for (int i = 2 * transfers; i-- > 0;) MPI_Start(q + i);
        for (int i = 0; i < transfers; i++) {
            int n = sent[i], begin = draw(t, n), way = draw(t, 3);
            for (int k = 0; k < n; k++) order[k] = (begin + k) % n, say(t, "part %d %d", world_rank_of(comm, to), 4 * WHOLE / n);
            if (way == 0) for (int k = 0; k < n; k++) MPI_Pready(order[k], q[i]);
            if (way == 1) MPI_Pready_list(n, order, q[i]);
            if (way == 2) {
                if (begin > 0) MPI_Pready_range(0, begin - 1, q[i]);
                MPI_Pready_range(begin, n - 1, q[i]);
            }
        }
        if (draw(t, 2))
            for (int i = 0; i < transfers; i++) {
#ifdef OPEN_MPI
                if (sent[i] == 1 && received[i] > 1) continue; /* in Open MPI 5.0 none of several partitions that were one ever arrives */
#endif
                for (flag = 0; !flag;) MPI_Parrived(q[transfers + i], received[i] / 2, &flag);
            }
        MPI_Waitall(2 * transfers, q, MPI_STATUSES_IGNORE);
        for (int i = 0; i < transfers; i++)
            for (int k = 0; k < WHOLE; k++) CHECK(in[i][k] == t->tag + i + round);
    }
    for (int i = 0; i < 2 * transfers; i++) MPI_Request_free(q + i);
#endif
}

/* Plans of one thread alone have classes that use it: sent() has no other way to it. */
static thread *sender;

static void sent(int world, long bytes)
{
    say(sender, "moves %d 1 %ld", world, bytes);
}

/* What MPI sends when it makes a communicator between groups, as recorded below the libraries. */
static void made_between(thread *t)
{
    int messages = OF_MPICH ? 3 : 6;
    if (g.own == 0) say(t, "moves %d %d %d", g.other[0], messages, OF_MPICH ? 6 + 8 * g.mine : 20 + 50 * g.mine);
    if (g.mine < 2) return;
    /* To the second of the group, and from it. */
    if (g.own == 0) say(t, "moves %d %d %d", g.group[1], OF_MPICH ? 5 : 9, OF_MPICH ? 280 + 8 * g.others : 32 + 50 * g.others);
    else say(t, "moves %d %d %d", g.group[0], OF_MPICH ? 2 : 6, OF_MPICH ? 260 : 24);
}

/* Messages each way between all pairs. */
static void messages_between(thread *t)
{
    static char out[2][64], in[2][64];
    int bytes = 1 + draw(t, 60), room = bytes + draw(t, 4), mode = draw(t, 3), wild = draw(t, 2), tag = t->tag, count = 0;
    MPI_Request q[4];
    for (int i = 0; i < g.others; i++) {
        in[i][0] = -1, out[i][0] = g.group[g.own];
        say_recv(t, g.inter, i, tag, room);
        MPI_Irecv(in[i], room, MPI_BYTE, wild && g.others == 1 ? MPI_ANY_SOURCE : i, tag, g.inter, q + count++);
    }
    for (int i = 0; i < g.others; i++) send(t, mode, out[i], bytes, MPI_BYTE, 1, i, tag, g.inter, q + count++);
    complete(t, count, q);
    for (int i = 0; i < g.others; i++) CHECK(in[i][0] == g.other[i]);
}

/* A communicator is divided into one member and the others: messages and collectives between them; perhaps they are merged again. */
static void between_groups(thread *t)
{
    static const char *const names[] = { "Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Gatherv",
        "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block" };
    MPI_Comm comm = choose(t), half, merged;
    int rank, size, alone = draw(t, 12), backwards = draw(t, 2), rounds = 1 + draw(t, 6), merge = draw(t, 2);
    begin_class(t, "between groups");
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size == 1) return;
    alone %= size;
    int is_alone = rank == alone;
    MPI_Comm_split(comm, is_alone, backwards ? -rank : rank, &half);
    MPI_Comm_size(half, &g.mine);
    say(t, "comm %d", g.mine);
    int first = backwards ? size - 1 : 0;
    if (first == alone) first += backwards ? -1 : 1;
    MPI_Intercomm_create(half, 0, comm, is_alone ? first : alone, t->tag, &g.inter);
    MPI_Comm_rank(g.inter, &g.own);
    MPI_Comm_remote_size(g.inter, &g.others);
    for (int i = 0; i < g.mine; i++) g.group[i] = world_rank_of(half, i);
    for (int i = 0; i < g.others; i++) g.other[i] = world_rank_of(g.inter, i);
    sender = t;
    made_between(t);
    say(t, "comm %d", g.mine);
    for (int round = 0; round < rounds; round++) {
        int what = draw(t, ALL + 3), root = world_rank_of(comm, draw(t, size)), r;
        g.way = draw(t, WAYS), g.n = 1 + draw(t, MOST_INTS);
        if (what >= ALL) { messages_between(t); continue; }
        if (is_broken(what, root)) continue;
        r = role_of(what, root);
        say(t, "between %s %d %d %d", names[what], g.mine, g.others, r < 0 ? -1 : r == 0 ? -2 : r == 1 ? -3 : root_argument(what, root));
        call_between(what, root);
    }
    if (merge) {
        MPI_Intercomm_merge(g.inter, is_alone, &merged);
        say(t, "comm %d", size);
        say(t, "free");
        MPI_Comm_free(&merged);
    }
    say(t, "free");
    say(t, "free");
    MPI_Comm_free(&g.inter);
    MPI_Comm_free(&half);
}

/* One of the classes. Those that change what all threads share, or that all do on MPI_COMM_SELF, are for one thread. */
static void any_class(thread *t)
{
    int chosen = draw(t, 12);
    if (threads > 1 && chosen < 5) chosen += 5;
    switch (chosen) {
    case 0: attributes_of_communicators(t); break;
    case 1: name_service(t); break;
    case 2: tool_interface(t); break;
    case 3: case 4: between_groups(t); break;
    case 5: attributes_of_datatypes(t); break;
    case 6: generalized_requests(t); break;
    case 7: reused_handles(t); break;
    case 8: disconnected(t); break;
    case 9: info_objects(t); break;
    case 10: partitioned(t); break;
    default: user_operations(t); break;
    }
}
