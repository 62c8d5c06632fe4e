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

/* Whether this world has met another one, and by which communicator first. */
static int met_worlds;
static MPI_Comm first_meeting;

/* Between worlds, the tasks are those that the world was told. */
static int spawned_rank_of(MPI_Comm comm, int rank, int *found)
{
    *found = rank >= 0 && rank < 2 ? g.other[rank] : -1;
    return met_worlds && (comm == g.inter || comm == first_meeting);
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

/* Collectives and messages between the groups, which are `size` ranks of MPI_COMM_WORLD together. */
static void rounds_between(thread *t, int rounds, const int *all, int size)
{
    static const char *const names[] = { "Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Gatherv",
        "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block" };
    for (int round = 0; round < rounds; round++) {
        int what = draw(t, ALL + 3), root = all[draw(t, size)], r;
        g.way = draw(t, WAYS), g.n = 1 + draw(t, MOST_INTS);
        if (what >= ALL) { messages_between(t); continue; }
        if (is_broken(what, root)) continue;
        r = role_of(what, root);
        say(t, "between %s %d %d %d", names[what], g.mine, g.others, r < 0 ? -1 : r == 0 ? -2 : r == 1 ? -3 : root_argument(what, root));
        call_between(what, root);
    }
}

/* A communicator is divided into one member and the others: messages and collectives between them; perhaps they are merged again. */
static void between_groups(thread *t)
{
    MPI_Comm comm = choose(t), half, merged;
    int all[MOST_MEMBERS], rank, size, alone = draw(t, 12), backwards = draw(t, 2), rounds = 1 + draw(t, 6), merge = draw(t, 2);
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
    for (int i = 0; i < size; i++) all[i] = world_rank_of(comm, i);
    rounds_between(t, rounds, all, size);
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

/* Number of tasks of all worlds so far. */
static int tasks;

/* Frees a communicator between worlds. */
static void left(thread *t, MPI_Comm *inter)
{
    say(t, "free");
    if (draw(t, 2)) {
        MPI_Comm_free(inter);
        return;
    }
#ifdef OPEN_MPI
    g.way = 0;
    count_sent(BARRIER, -1, 0);
#endif
    MPI_Comm_disconnect(inter);
}

/* Worlds that have met: `is_child`: this rank is in the one that was spawned. `own` is the communicator of the own group. */
static void meet(thread *t, MPI_Comm own, int is_child)
{
    int all[4], size = g.mine + g.others, begin = is_child ? g.others : 0, rounds = draw(t, 5), merge = draw(t, 2), again = draw(t, 2);
    int rank = begin + g.own, to = (rank + 1) % size, from = (rank + size - 1) % size, out = 1, in;
    MPI_Comm merged;
    char port[MPI_MAX_PORT_NAME] = "";
    for (int i = 0; i < g.mine; i++) all[begin + i] = g.group[i];
    for (int i = 0; i < g.others; i++) all[(is_child ? 0 : g.mine) + i] = g.other[i];
    sender = t;
    met_worlds = 1, first_meeting = g.inter;
    made_between(t);
    say(t, "comm %d", g.mine);
    rounds_between(t, rounds, all, size);
    if (merge) {
        MPI_Intercomm_merge(g.inter, is_child, &merged);
        say(t, "comm %d", size);
        say(t, "send %d %d 4 standard", all[to], t->tag);
        say(t, "recv %d %d 4", all[from], t->tag);
        MPI_Sendrecv(&out, 1, MPI_INT, to, t->tag, &in, 1, MPI_INT, from, t->tag, merged, MPI_STATUS_IGNORE);
        say(t, "free");
        MPI_Comm_free(&merged);
    }
    if (again) {
        if (g.own == 0 && !is_child) {
            MPI_Open_port(MPI_INFO_NULL, port);
            send(t, 0, port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, t->tag, first_meeting, NULL);
        } else if (g.own == 0) {
            say_recv(t, first_meeting, 0, t->tag, MPI_MAX_PORT_NAME);
            MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, t->tag, first_meeting, MPI_STATUS_IGNORE);
        }
        if (is_child) MPI_Comm_connect(port, MPI_INFO_NULL, 0, own, &g.inter);
        else MPI_Comm_accept(port, MPI_INFO_NULL, 0, own, &g.inter);
        if (g.own == 0 && !is_child) MPI_Close_port(port);
        made_between(t);
        say(t, "comm %d", g.mine);
        rounds_between(t, rounds, all, size);
        left(t, &g.inter);
    }
    left(t, &first_meeting);
    met_worlds = 0, g.inter = MPI_COMM_NULL;
}

/* One or two ranks spawn one or two; a barrier keeps the order of the worlds. Debian's MPICH cannot spawn, and the children of MPICH 5 do not know
 * in which world they are. */
static void spawned(thread *t)
{
    int rank, alone = draw(t, 3), pair = draw(t, 2), children = 1 + draw(t, 2), root = draw(t, 2), size;
    begin_class(t, "spawned worlds");
#if defined OPEN_MPI && OMPI_MAJOR_VERSION == 4
    char words[5][32];
    char *arguments[] = { "child", (char *)directory, words[0], words[1], words[2], words[3], words[4], NULL };
    MPI_Comm half;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank == alone, 0, &half);
    MPI_Comm_size(half, &size);
    say(t, "comm %d", size);
    if (size == 1 + pair) {
        g.mine = size, g.others = children;
        MPI_Comm_rank(half, &g.own);
        for (int i = 0; i < 2; i++) g.group[i] = i < size ? world_rank_of(half, i) : -1, g.other[i] = tasks + i;
        snprintf(words[0], 32, "%llu", (unsigned long long)t->state);
        snprintf(words[1], 32, "%d", t->tag);
        snprintf(words[2], 32, "%d", tasks);
        for (int i = 0; i < 2; i++) snprintf(words[3 + i], 32, "%d", g.group[i]);
        MPI_Comm_spawn((char *)program, arguments, children, MPI_INFO_NULL, root % size, half, &g.inter, MPI_ERRCODES_IGNORE);
        meet(t, half, 0);
    }
    say(t, "free");
    MPI_Comm_free(&half);
    tasks += children;
    say(t, "coll Barrier %d -1", world_size);
    MPI_Barrier(MPI_COMM_WORLD);
#endif
    (void)rank, (void)alone, (void)pair, (void)children, (void)root, (void)size;
}

/* A rank of a world that was spawned. */
static void be_child(thread *t, char **words)
{
    int begin = atoi(words[3]);
    MPI_Comm_get_parent(&g.inter);
    MPI_Comm_rank(MPI_COMM_WORLD, &g.own);
    g.mine = world_size;
    MPI_Comm_remote_size(g.inter, &g.others);
    for (int i = 0; i < 2; i++) g.group[i] = begin + i, g.other[i] = atoi(words[4 + i]);
    t->state = strtoull(words[1], NULL, 10);
    t->tag = atoi(words[2]);
    meet(t, MPI_COMM_WORLD, 1);
}

/* One of the classes. Those that change what all threads share, or that all do on MPI_COMM_SELF, are for one thread. */
static void any_class(thread *t)
{
    int chosen = draw(t, 13);
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
    case 12: if (threads == 1) { spawned(t); break; } /* fall through */
    default: user_operations(t); break;
    }
}
