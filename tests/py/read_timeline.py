"""Reads a timeline as its viewers do and prints what it found as JSON: tracks, slices, arrows.

Perfetto files are taken apart by the classes of the official package (pip install perfetto); what packets mean is from the
documentation of TracePacket and TrackEvent. With --processor the official trace processor reads the file, too: its slices and
arrows must be the same. It is a program that the package fetches when it is first used; where that fails this says so.
"""

import contextlib
import json
import sys


def perfetto(path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    with open(path, "rb") as file:
        trace = proto.Trace.FromString(file.read())
    names, annotations, processes, tracks, counters = {}, {}, {}, {}, {}
    event_packets, realtime = [], None
    for number, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1
        if packet.sequence_flags & 1:
            assert number == 0, "only the first packet forgets names"
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == 1:
                realtime = clock.timestamp
            else:
                assert (clock.clock_id, clock.timestamp) == (6, 0)
        for entry in packet.interned_data.event_names:
            assert names.setdefault(entry.iid, entry.name) == entry.name
        for entry in packet.interned_data.debug_annotation_names:
            assert annotations.setdefault(entry.iid, entry.name) == entry.name
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid and track.uuid not in tracks and track.uuid not in processes
            if track.HasField("process"):
                processes[track.uuid] = (track.process.pid, track.process.process_name)
            elif track.HasField("thread"):
                pid = track.thread.pid
                assert pid in [process[0] for process in processes.values()], "its process is described"
                tracks[track.uuid] = {"name": track.thread.thread_name, "pid": pid, "tid": track.thread.tid}
            else:
                if track.HasField("counter"):
                    counters[track.uuid] = {"name": track.name, "unit": track.counter.unit_name, "points": []}
                    assert track.parent_uuid in processes
                    continue
                parent = tracks[track.parent_uuid]
                tracks[track.uuid] = {"name": track.name, "pid": parent["pid"], "beside": parent["name"]}
        if packet.HasField("track_event"):
            assert packet.sequence_flags & 2
            if packet.track_event.type == proto.TrackEvent.TYPE_COUNTER:
                value = packet.track_event.double_counter_value
                counters[packet.track_event.track_uuid]["points"].append([packet.timestamp, value])
                continue
            assert packet.track_event.track_uuid in tracks, "a track is described in front of its events"
            event_packets.append(packet)
    # Viewers sort by time, and leave what is at the same time in the order of the file.
    event_packets.sort(key=lambda packet: packet.timestamp)
    stacks, slices = {}, []
    for packet in event_packets:
        event, at = packet.track_event, packet.timestamp
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
            args = {}
            for note in event.debug_annotations:
                if note.HasField("string_value"):
                    # Text stands in the name, as numbers are values.
                    args[f"{annotations[note.name_iid]} {note.string_value}"] = 1
                    continue
                args[annotations[note.name_iid]] = note.int_value if note.HasField("int_value") else note.uint_value
            slices.append(
                {
                    "track": tracks[event.track_uuid]["name"],
                    "name": names[event.name_iid],
                    "begin": at,
                    "depth": len(stack),
                    "args": args,
                    "sends": list(event.flow_ids),
                    "receives": [],
                }
            )
            stack.append(slices[-1])
        else:
            assert event.type == proto.TrackEvent.TYPE_SLICE_END
            slice = stack.pop()
            slice.update(end=at, receives=list(event.terminating_flow_ids), received=at)
    assert not any(stacks.values()), "a slice without an end"
    return processes.values(), tracks.values(), slices, realtime, list(counters.values())


def chrome(path):
    with open(path) as file:
        trace = json.load(file)
    processes, tracks, slices, open_slices, counters = [], {}, [], {}, {}
    ns = lambda micros: round(micros * 1000)
    for event in trace["traceEvents"]:
        key = (event["pid"], event.get("tid"))
        if event["ph"] == "M":
            if event["name"] == "process_name":
                processes.append((event["pid"], event["args"]["name"]))
            elif event["name"] == "thread_name":
                tracks[key] = {"name": event["args"]["name"], "pid": key[0], "tid": key[1]}
            continue
        if event["ph"] == "C":
            counter = {"name": event["name"], "unit": "%", "points": []}
            counters.setdefault(event["name"], counter)["points"].append([ns(event["ts"]), float(event["args"]["busy"])])
            continue
        track = tracks[key]["name"]
        if event["ph"] in "XB":
            slice = {"track": track, "name": event["name"], "begin": ns(event["ts"]), "depth": 0, "sends": [], "receives": []}
            is_text = lambda key: key in ("function", "phase")
            args = event.get("args", {}).items()
            slice["args"] = dict((f"{key} {value}", 1) if is_text(key) else (key, int(value)) for key, value in args)
            slices.append(slice)
            if event["ph"] == "X":
                slice["end"] = ns(event["ts"]) + ns(event["dur"])
            else:
                slice["depth"] = len(open_slices.setdefault(key, []))
                open_slices[key].append(slice)
        elif event["ph"] == "E":
            open_slices[key].pop()["end"] = ns(event["ts"])
        else:
            # Arrows stand behind the slice that they belong to: they begin with it, or end in it.
            slice, at = slices[-1], ns(event["ts"])
            assert slice["track"] == track
            if event["ph"] == "s":
                assert slice["begin"] == at
                slice["sends"].append(int(event["id"], 16))
            else:
                assert slice["begin"] <= at <= slice["end"] and event["bp"] == "e"
                slice["receives"].append(int(event["id"], 16))
                slice["received"] = at
    assert not any(open_slices.values()), "a slice without an end"
    realtime = trace.get("otherData", {}).get("start_ns_since_1970")
    return processes, tracks.values(), slices, realtime and int(realtime), list(counters.values())


def processor(path, slices):
    """Compares with what the trace processor makes of the file; why not, if it is not there."""
    try:
        from perfetto.trace_processor import TraceProcessor

        with contextlib.redirect_stdout(sys.stderr):
            processor = TraceProcessor()
        processor.close()
    except Exception as error:
        return f"the trace processor cannot be had: {type(error).__name__}"
    processor = TraceProcessor(trace=path)
    errors = processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    assert not list(errors), [(row.name, row.value) for row in errors]
    rows = processor.query(
        "select slice.id, ts, dur, slice.name, slice.depth, coalesce(thread.name, track.name) as track "
        "from slice join track on track.id = slice.track_id left join thread_track on thread_track.id = track.id "
        "left join thread using (utid)"
    )
    key = lambda slice: (slice["track"], slice["begin"], slice["end"], slice["name"], slice["depth"])
    theirs, by_id = [], {}
    for row in rows:
        theirs.append((row.track, row.ts, row.ts + row.dur, row.name, row.depth))
        by_id[row.id] = theirs[-1]
    assert sorted(theirs) == sorted(map(key, slices))
    arrows = processor.query("select slice_out, slice_in from flow")
    theirs = sorted((by_id[row.slice_out], by_id[row.slice_in]) for row in arrows)
    receivers = {flow: slice for slice in slices for flow in slice["receives"]}
    ours = [(key(slice), key(receivers[flow])) for slice in slices for flow in slice["sends"] if flow in receivers]
    assert theirs == sorted(ours)
    processor.close()
    return None


path = sys.argv[1]
with open(path, "rb") as file:
    is_json = file.read(1) == b"{"
processes, tracks, slices, realtime, counters = (chrome if is_json else perfetto)(path)
begins = {flow: slice["begin"] for slice in slices for flow in slice["sends"]}
for slice in slices:
    for flow in slice["receives"]:
        assert begins.get(flow, 0) <= slice["received"], "an arrow ends before it begins, and viewers drop it"
result = {"processes": list(processes), "tracks": list(tracks), "slices": slices, "realtime": realtime, "counters": counters}
if "--processor" in sys.argv:
    result["no_processor"] = processor(path, slices)
json.dump(result, sys.stdout)
