"""Signature Version 4: Amazon's published examples, and the example of botocore's `generate_db_auth_token`."""

from __future__ import annotations

from datetime import UTC, datetime

from coder.net.aws_signing import AwsCredentials, Scope, presigned_query, rds_token, signing_key

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EXAMPLE = AwsCredentials("AKIAIOSFODNN7EXAMPLE", SECRET)


def test_signing_key_of_documentation() -> None:
    key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", Scope("us-east-1", "iam", 0))
    assert key.hex() == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"


def test_presigned_url_of_documentation() -> None:
    scope = Scope("us-east-1", "s3", 86400)
    moment = datetime(2013, 5, 24, tzinfo=UTC)
    host = "examplebucket.s3.amazonaws.com"
    query = presigned_query(EXAMPLE, scope, moment, host, "/test.txt", {}, "UNSIGNED-PAYLOAD")
    signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    assert query.endswith(f"&X-Amz-Signature={signature}")


def test_database_token_equals_botocore() -> None:
    host = "prod-instance.us-east-1.rds.amazonaws.com"
    moment = datetime(2016, 11, 7, 17, 39, 33, tzinfo=UTC)
    token = rds_token(AwsCredentials("akid", "skid"), "us-east-1", host, 3306, "someusername", moment)
    assert token == (
        f"{host}:3306/?Action=connect&DBUser=someusername&X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=akid%2F20161107%2Fus-east-1%2Frds-db%2Faws4_request&X-Amz-Date=20161107T173933Z"
        "&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=d1138cdbc0ca63eec012ec0fc6c2267e03642168f5884a7795320d4c18374c61"
    )


def test_session_token_is_signed() -> None:
    moment = datetime(2016, 11, 7, tzinfo=UTC)
    token = rds_token(AwsCredentials("akid", "skid", "a+b/c="), "us-east-1", "h", 5432, "ü", moment)
    assert "&DBUser=%C3%BC&" in token and "&X-Amz-Security-Token=a%2Bb%2Fc%3D&" in token


def test_secrets_are_not_shown() -> None:
    assert SECRET not in repr(AwsCredentials("a", SECRET, SECRET))
