/* A container that is cut, overwritten or replaced while it is replayed: one error, which each later call repeats; or the run as before.
 * changed_container TRACE cut|overwrite|replace|leave messages-before */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vef_replay.h>

#define CHECK(holds)                                                         \
    do {                                                                     \
        if (!(holds)) {                                                      \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static void change(const char *path, const char *how)
{
    struct stat about;
    CHECK(stat(path, &about) == 0);
    if (strcmp(how, "cut") == 0) {
        CHECK(truncate(path, about.st_size / 3) == 0);
    } else if (strcmp(how, "overwrite") == 0) {
        char garbage[65536];
        off_t at;
        int file = open(path, O_WRONLY);
        CHECK(file >= 0);
        memset(garbage, 0x5a, sizeof garbage);
        for (at = about.st_size / 3; at + (off_t)sizeof garbage < about.st_size; at += sizeof garbage)
            CHECK(pwrite(file, garbage, sizeof garbage, at) == (ssize_t)sizeof garbage);
        close(file);
    } else if (strcmp(how, "replace") == 0) {
        CHECK(unlink(path) == 0);
        FILE *file = fopen(path, "w");
        CHECK(file != NULL && fputs("another file\n", file) >= 0 && fclose(file) == 0);
    }
}

int main(int argc, char **argv)
{
    vef_builder *builder = vef_builder_new();
    vef_replay *replay = NULL;
    vef_message message;
    vef_stats stats;
    uint64_t now, taken = 0, before;
    int result = 0;
    CHECK(argc == 4);
    before = strtoull(argv[3], NULL, 10);
    CHECK(vef_builder_add_job(builder, argv[1]) == 0);
    vef_builder_same_node_network(builder);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    vef_builder_free(builder);
    while (result >= 0 && vef_replay_next_ready(replay, &now) > 0) {
        while ((result = vef_replay_pop_ready(replay, now, &message, sizeof message)) > 0) {
            if (++taken == before) change(argv[1], argv[2]);
            if ((result = vef_replay_delivered(replay, message.id, now)) < 0) break;
        }
    }
    if (result < 0) {
        /* The first error is that of each later call, and why nothing happens. */
        char first[1024];
        CHECK(result == VEF_ERROR_TRACE && taken >= before);
        CHECK(strlen(vef_replay_error(replay)) < sizeof first);
        strcpy(first, vef_replay_error(replay));
        CHECK(strchr(first, '\n') == NULL && strstr(first, argv[1]) != NULL);
        CHECK(vef_replay_pop_ready(replay, now, &message, sizeof message) == VEF_ERROR_TRACE);
        CHECK(strcmp(vef_replay_error(replay), first) == 0);
        CHECK(vef_replay_delivered(replay, message.id, now) == VEF_ERROR_TRACE);
        CHECK(strcmp(vef_replay_error(replay), first) == 0);
        CHECK(vef_replay_stuck(replay) != NULL && strcmp(vef_replay_stuck(replay), first) == 0);
        CHECK(vef_replay_is_complete(replay) <= 0);
        printf("error: %s\n", first);
    } else {
        CHECK(vef_replay_stuck(replay) == NULL && vef_replay_is_complete(replay) == 1);
        CHECK(vef_replay_stats(replay, &stats, sizeof stats) == VEF_OK && stats.messages == taken);
        printf("complete: %lu messages\n", (unsigned long)taken);
    }
    vef_replay_free(replay);
    return 0;
}
