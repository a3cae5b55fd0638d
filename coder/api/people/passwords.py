"""JSON shapes of passwords and signing in with one, shared by server and client."""

from __future__ import annotations

from coder.api.base.enums import LoginType
from coder.api.base.struct import ApiStruct


class ChangePasswordWithOneTimePasscodeRequest(ApiStruct):
    email: str
    password: str
    one_time_passcode: str


class ConvertLoginRequest(ApiStruct):
    to_type: str
    password: str


class LoginWithPasswordRequest(ApiStruct):
    email: str
    password: str


class LoginWithPasswordResponse(ApiStruct):
    session_token: str


class UpdateUserPasswordRequest(ApiStruct):
    old_password: str
    password: str


class UserLoginType(ApiStruct):
    login_type: LoginType


class ValidateUserPasswordRequest(ApiStruct):
    password: str


class ValidateUserPasswordResponse(ApiStruct):
    valid: bool
    details: str
