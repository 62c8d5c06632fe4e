"""Prints the nodes of a Chakra execution trace, decoded by Google's library: a test of what vef export --to chakra writes."""

import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32

KINDS = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]
F = descriptor_pb2.FieldDescriptorProto
SCALARS = [("double", F.TYPE_DOUBLE), ("float", F.TYPE_FLOAT), ("int32", F.TYPE_INT32), ("int64", F.TYPE_INT64),
           ("uint32", F.TYPE_UINT32), ("uint64", F.TYPE_UINT64), ("sint32", F.TYPE_SINT32), ("sint64", F.TYPE_SINT64),
           ("fixed32", F.TYPE_FIXED32), ("fixed64", F.TYPE_FIXED64), ("sfixed32", F.TYPE_SFIXED32),
           ("sfixed64", F.TYPE_SFIXED64), ("bool", F.TYPE_BOOL), ("string", F.TYPE_STRING), ("bytes", F.TYPE_BYTES)]

file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")


def message(name, fields):
    made = file.message_type.add(name=name)
    for number, (field, kind, repeated) in fields.items():
        label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
        added = made.field.add(name=field, number=number, label=label)
        if isinstance(kind, str):
            added.type, added.type_name = F.TYPE_MESSAGE, ".et." + kind
        else:
            added.type = kind
    return made


attribute = message("Attribute", {1: ("name", F.TYPE_STRING, False), 2: ("doc", F.TYPE_STRING, False)})
attribute.oneof_decl.add(name="value")
for at, (name, kind) in enumerate(SCALARS):
    attribute.field.add(name=name + "_val", number=3 + 2 * at, type=kind, label=F.LABEL_OPTIONAL, oneof_index=0)
message("GlobalMetadata", {1: ("version", F.TYPE_STRING, False), 2: ("attr", "Attribute", True)})
message("Node", {1: ("id", F.TYPE_UINT64, False), 2: ("name", F.TYPE_STRING, False), 3: ("type", F.TYPE_INT32, False),
                 4: ("ctrl_deps", F.TYPE_UINT64, True), 5: ("data_deps", F.TYPE_UINT64, True),
                 6: ("start", F.TYPE_UINT64, False), 7: ("duration", F.TYPE_UINT64, False),
                 10: ("attr", "Attribute", True)})
pool = descriptor_pool.DescriptorPool()
pool.Add(file)


def of(name):
    found = pool.FindMessageTypeByName("et." + name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)()
    return message_factory.MessageFactory(pool).GetPrototype(found)()


content = open(sys.argv[1], "rb").read()
at, first = 0, True
while at < len(content):
    length, at = _DecodeVarint32(content, at)
    decoded = of("GlobalMetadata" if first else "Node")
    assert decoded.ParseFromString(content[at:at + length]) == length
    assert not list(getattr(decoded, "UnknownFields", lambda: [])())
    at += length
    if first:
        print("version", decoded.version)
    else:
        values = {a.name: getattr(a, a.WhichOneof("value")) for a in decoded.attr}
        assert values.pop("is_cpu_op") is False
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        print(f"{decoded.id} {KINDS[decoded.type]}_NODE {shown} {decoded.duration} us after {list(decoded.data_deps)}")
    first = False
