"""A process's place among those of its server."""

from __future__ import annotations

from uuid import uuid4

from coder.coderd.services.foundation.place import (
    DUTIES,
    INSTANCES,
    Incident,
    Place,
    Sibling,
    instance_id,
    instance_of,
    same_machine,
)

MACHINE = uuid4()


def sibling(number: int, *duties: str) -> Sibling:
    return Sibling(f"process-{number}", instance_id(MACHINE, number), f"/doors/{number}.sock", duties)


def test_only_process_has_all_duties() -> None:
    place = Place()
    assert place.is_alone
    assert place.duties == DUTIES
    assert place.holder_of("relay") is None


def test_instances_belong_to_one_machine() -> None:
    ids = [instance_id(MACHINE, number) for number in (0, 1, INSTANCES - 1)]
    assert [instance_of(replica) for replica in ids] == [0, 1, INSTANCES - 1]
    assert all(same_machine(ids[0], other) for other in ids)
    assert not same_machine(ids[0], uuid4())
    assert instance_id(MACHINE, INSTANCES + 3) == instance_id(MACHINE, 3)


def test_duty_holder_is_a_sibling() -> None:
    place = Place("api-1", instance_id(MACHINE, 0), frozenset({"http"}), 3)
    place.update([sibling(0, "http"), sibling(1, "relay"), sibling(2, "loops")])
    assert set(place.siblings) == {instance_id(MACHINE, 1), instance_id(MACHINE, 2)}
    assert place.holder_of("relay") == sibling(1, "relay")
    assert place.holder_of("http") is None
    assert place.holder_of("apps") is None
    assert place.instance(2) == sibling(2, "loops")


def test_update_notifies_with_new_state() -> None:
    place = Place("api-1", instance_id(MACHINE, 0), frozenset({"http"}), 2)
    seen: list[frozenset[object]] = []
    place.on_change.append(lambda: seen.append(place.lost))
    incident = Incident("relay", "signal", "killed by SIGKILL", 1.0)
    lost = instance_id(MACHINE, 7)
    place.update([], [lost], [incident], [("relay", "signal", 2)])
    assert seen == [frozenset({lost})]
    assert place.incidents == (incident,)
    assert place.restarts == {("relay", "signal"): 2}
