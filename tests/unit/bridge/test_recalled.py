"""A recall's answer as the tool gives it, where something of it cannot be believed."""

from __future__ import annotations

import jsonschema

from muniment.bridge.tools.memory import RECALL
from muniment.bridge.tools.recalled import recalled, rendered_recall
from muniment.v1 import memory_pb2


def test_hits_that_cannot_be_believed_are_marked_and_say_where_they_are() -> None:
    described = memory_pb2.RecallHit(score=3, retrievers=["bm25"], reasons=["it fails"])
    described.episode.episode_id, described.episode.seq = "ep_1", 7
    described.tampered = True
    unknown = memory_pb2.RecallHit(score=2, tampered=True)
    unknown.episode.seq = 9
    pin = memory_pb2.RecallHit(score=1, tampered=True)
    pin.pin.pin_id = "pin_1"
    response = memory_pb2.RecallResponse(hits=[described, unknown, pin], project_id="proj_1")
    content = recalled("what?", response)
    content["rendered"] = rendered_recall(content)
    jsonschema.validate(content, RECALL.output_schema)
    told = [(one["id"], one["tampered"], one["text"]) for one in content["results"]]
    assert told == [("ep_1", True, ""), ("number 9", True, ""), ("pin_1", True, "")]
    assert [one.get("seq") for one in content["results"]] == [7, 9, None]
    assert "1. [episode] TAMPERED ep_1: not shown\n   why: it fails\n" in content["rendered"]
    assert "3. [pin] TAMPERED pin_1: not shown" in content["rendered"]


def test_other_hits_say_nothing_of_it() -> None:
    hit = memory_pb2.RecallHit(text="the port is 8080")
    hit.episode.episode_id, hit.episode.role = "ep_1", memory_pb2.ROLE_USER
    content = recalled("port", memory_pb2.RecallResponse(hits=[hit], project_id="proj_1"))
    assert "tampered" not in content["results"][0]
