"""JSON shapes with names alone, for readers that need only names, such as TAB completion."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct


class Named(ApiStruct):
    name: str


class NamedWorkspaces(ApiStruct):
    workspaces: list[Named]


class NamedUser(ApiStruct):
    username: str


class NamedUsers(ApiStruct):
    users: list[NamedUser]


class NamedTasks(ApiStruct):
    tasks: list[Named]


class NamedRegions(ApiStruct):
    regions: list[Named]


class NamedToken(ApiStruct):
    token_name: str
