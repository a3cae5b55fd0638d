"""A process's place among those of its server."""

from __future__ import annotations

from uuid import uuid4

from coder.coderd.services.foundation.this_process import (
    DUTIES,
    INSTANCES,
    Incident,
    Sibling,
    ThisProcess,
    instance_id,
    instance_of,
    same_machine,
)

MACHINE = uuid4()


def sibling(number: int, *duties: str) -> Sibling:
    return Sibling(f"process-{number}", instance_id(MACHINE, number), f"/doors/{number}.sock", duties)


def test_only_process_has_all_duties() -> None:
    process = ThisProcess()
    assert process.is_alone
    assert process.duties == DUTIES
    assert process.holder_of("relay") is None


def test_instances_belong_to_one_machine() -> None:
    ids = [instance_id(MACHINE, number) for number in (0, 1, INSTANCES - 1)]
    assert [instance_of(replica) for replica in ids] == [0, 1, INSTANCES - 1]
    assert all(same_machine(ids[0], other) for other in ids)
    assert not same_machine(ids[0], uuid4())
    assert instance_id(MACHINE, INSTANCES + 3) == instance_id(MACHINE, 3)


def test_duty_holder_is_a_sibling() -> None:
    process = ThisProcess("api-1", instance_id(MACHINE, 0), frozenset({"http"}), 3)
    process.update([sibling(0, "http"), sibling(1, "relay"), sibling(2, "loops")])
    assert set(process.siblings) == {instance_id(MACHINE, 1), instance_id(MACHINE, 2)}
    assert process.holder_of("relay") == sibling(1, "relay")
    assert process.holder_of("http") is None
    assert process.holder_of("apps") is None
    assert process.instance(2) == sibling(2, "loops")


def test_update_notifies_with_new_state() -> None:
    process = ThisProcess("api-1", instance_id(MACHINE, 0), frozenset({"http"}), 2)
    seen: list[frozenset[object]] = []
    process.on_change.append(lambda: seen.append(process.lost))
    incident = Incident("relay", "signal", "killed by SIGKILL", 1.0)
    lost = instance_id(MACHINE, 7)
    process.update([], [lost], [incident], [("relay", "signal", 2)])
    assert seen == [frozenset({lost})]
    assert process.incidents == (incident,)
    assert process.restarts == {("relay", "signal"): 2}
