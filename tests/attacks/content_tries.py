"""Content of requests: JSON, query strings, searches, pages, multipart, archives."""

from __future__ import annotations

import base64
import gzip
import io
import os
import struct
import tarfile
import zipfile
from urllib.parse import quote

from tests.attacks.tries import WireTry, wire

_TOKEN = b"Host: {host}\r\nCoder-Session-Token: {token}\r\n"


def post(path: str, body: bytes, kind: str = "application/json", method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n".encode()
    return head + _TOKEN + b"\r\n" + body


def get(path: str) -> bytes:
    return b"GET " + path.encode() + b" HTTP/1.1\r\n" + _TOKEN + b"\r\n"


JSON: dict[str, bytes] = {
    "nothing": b"",
    "spaces": b" " * 60000,
    "a number": b"1",
    "null": b"null",
    "true": b"true",
    "a text": b'"x"',
    "a list": b"[]",
    "a list of lists, 100,000 deep": b"[" * 100000,
    "closed lists, 20,000 deep": b"[" * 20000 + b"]" * 20000,
    "objects, 10,000 deep": b'{"a":' * 10000 + b"1" + b"}" * 10000,
    "lists and objects in turn": b'[{"a":' * 8000 + b"1" + b"}]" * 8000,
    "an object without an end": b'{"checks":{',
    "two values": b"{} {}",
    "a comma at the end": b'{"checks":{},}',
    "a comma at the beginning": b"[,1]",
    "comments": b'{/* x */"checks":{}}',
    "single quotes": b"{'checks':{}}",
    "a key without quotes": b"{checks:{}}",
    "NaN": b'{"checks":NaN}',
    "Infinity": b'{"checks":-Infinity}',
    "hexadecimal": b'{"checks":0xff}',
    "leading zeros": b'{"checks":007}',
    "a plus": b'{"checks":+1}',
    "a point without digits": b'{"checks":1.}',
    "an exponent without digits": b'{"checks":1e}',
    "a number of 50,000 digits": b'{"checks":' + b"9" * 50000 + b"}",
    "an exponent of 10 digits": b'{"checks":1e9999999999}',
    "an exponent below the smallest": b'{"checks":1e-9999999999}',
    "a fraction of 50,000 digits": b'{"checks":0.' + b"1" * 50000 + b"}",
    "minus zero": b'{"checks":-0}',
    "100,000 zeros in a list": b"[" + b"0," * 100000 + b"0]",
    "200,000 keys": b"{" + b",".join(b'"%d":0' % n for n in range(100000)) + b"}",
    "one key 100,000 times": b"{" + b'"a":0,' * 100000 + b'"a":0}',
    "a known key twice": b'{"checks":{},"checks":[]}',
    "keys that collide when escaped": b'{"checks":{},"\\u0063hecks":1}',
    "a key of 500 KiB": b'{"' + b"a" * 500000 + b'":1}',
    "an empty key": b'{"":{"":1}}',
    "__proto__": b'{"__proto__":{"admin":true},"constructor":{"prototype":{}}}',
    "__class__": b'{"__class__":"os.system","py/object":"x"}',
    "an unpaired surrogate": b'{"checks":"\\ud800"}',
    "surrogates in the wrong order": b'{"checks":"\\udc00\\ud800"}',
    "a surrogate as key": b'{"\\ud800":1}',
    "a NUL": b'{"checks":"\\u0000"}',
    "a raw control character": b'{"checks":"\x01"}',
    "a raw line end": b'{"checks":"\n"}',
    "an unknown escape": b'{"checks":"\\x41"}',
    "half an escape": b'{"checks":"\\u12',
    "100,000 escapes": b'{"checks":"' + b"\\u0041" * 100000 + b'"}',
    "a backslash at the end": b'{"checks":"\\',
    "invalid UTF-8": b'{"checks":"\xff"}',
    "overlong UTF-8": b'{"checks":"\xc0\xaf"}',
    "surrogates in UTF-8": b'{"checks":"\xed\xa0\x80"}',
    "a code point above the last": b'{"checks":"\xf4\x90\x80\x80"}',
    "noncharacters": '{"checks":"\ufffe\uffff"}'.encode(),
    "directions": '{"checks":{"\u202e\u2066":{}}}'.encode(),
    "UTF-16": '{"checks":{}}'.encode("utf-16"),
    "UTF-32": '{"checks":{}}'.encode("utf-32"),
    "a byte order mark": b'\xef\xbb\xbf{"checks":{}}',
    "zeros": bytes(5000),
    "a gzip": gzip.compress(b'{"checks":{}}'),
    "YAML": b"checks: {a: &a [*a]}",
    "XML with entities": b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c SYSTEM "file:///etc/passwd">]><x>&c;</x>',
    "a pickle": b"cos\nsystem\n(S'id'\ntR.",
    "MessagePack": b"\x81\xa6checks\x80",
    "CBOR": b"\xa1\x66checks\xa0",
    "5,000 checks": b'{"checks":{'
    + b",".join(b'"%d":{"object":{"resource_type":"workspace"},"action":"read"}' % n for n in range(5000))
    + b"}}",
    "a check without an object": b'{"checks":{"a":null}}',
    "a check of an unknown type": b'{"checks":{"a":{"object":{"resource_type":"\\u0000"},"action":"x"}}}',
    "a check with ids that are none": b'{"checks":{"a":{"object":{"resource_type":"workspace","resource_id":"x","owner_id":"*","organization_id":"%"},"action":"read"}}}',
    "a check of every list type": b'{"checks":[{"object":[]}]}',
}
OTHER_BODIES: dict[str, bytes] = {
    "a schedule that never comes": post(
        "/api/v2/users/me/quiet-hours", b'{"schedule":"CRON_TZ=UTC 0 0 31 2 *"}', method="PUT"
    ),
    "quiet hours of 10,000 fields": post(
        "/api/v2/users/me/quiet-hours", b'{"schedule":"' + b"0 " * 10000 + b'"}', method="PUT"
    ),
    "quiet hours in no zone": post(
        "/api/v2/users/me/quiet-hours", b'{"schedule":"CRON_TZ=../../etc/passwd 0 0 * * *"}', method="PUT"
    ),
    "quiet hours in an absolute zone": post(
        "/api/v2/users/me/quiet-hours", b'{"schedule":"CRON_TZ=/etc/passwd 0 0 * * *"}', method="PUT"
    ),
    "quiet hours in a zone with NUL": post(
        "/api/v2/users/me/quiet-hours", b'{"schedule":"CRON_TZ=a\\u0000b 0 0 * * *"}', method="PUT"
    ),
    "a name of 10,000": post(
        "/api/v2/users/me/profile", b'{"username":"eve","name":"' + b"a" * 10000 + b'"}', method="PUT"
    ),
    "a name of combining marks": post(
        "/api/v2/users/me/profile", ('{"username":"eve","name":"' + "a" + "\u0301" * 100 + '"}').encode(), method="PUT"
    ),
    "a name with line ends": post(
        "/api/v2/users/me/profile", b'{"username":"eve","name":"a\\r\\nBcc: x@y"}', method="PUT"
    ),
    "a name with format fields": post(
        "/api/v2/users/me/profile", b'{"username":"eve","name":"{0.__class__} %s {{.}} ${x}"}', method="PUT"
    ),
    "a user name of dots": post("/api/v2/users/me/profile", b'{"username":"..","name":""}', method="PUT"),
    "a key of a lifetime of 10^18": post(
        "/api/v2/users/me/keys/tokens", b'{"lifetime":1000000000000000000,"token_name":"x"}'
    ),
    "a key of a negative lifetime": post("/api/v2/users/me/keys/tokens", b'{"lifetime":-1,"token_name":"y"}'),
    "a key of unknown scopes": post(
        "/api/v2/users/me/keys/tokens", b'{"scopes":["\\u0000","coder:*:*"],"token_name":"z"}'
    ),
    "a key of 10,000 allowed objects": post(
        "/api/v2/users/me/keys/tokens",
        b'{"token_name":"w","allow_list":[' + b'{"type":"workspace","id":"*"},' * 9999 + b'{"type":"*","id":"*"}]}',
    ),
    "a secret of 2 MiB": post("/api/v2/users/me/secrets", b'{"name":"x","value":"' + b"a" * (1 << 20) + b'"}'),
    "a secret named like the loader's variable": post(
        "/api/v2/users/me/secrets", b'{"name":"y","value":"x","env_name":"LD_PRELOAD"}'
    ),
    "a secret in a file outside": post(
        "/api/v2/users/me/secrets", b'{"name":"z","value":"x","file_path":"../../../etc/passwd"}'
    ),
    "a password of 1,000,000": post(
        "/api/v2/users/me/password", b'{"old_password":"' + b"a" * 900000 + b'","password":"x"}', method="PUT"
    ),
    "validating a password of 60 KiB": post("/api/v2/users/validate-password", b'{"password":"' + b"a" * 60000 + b'"}'),
    "validating a password of emoji": post(
        "/api/v2/users/validate-password", ('{"password":"' + "\U0001f600" * 2000 + '"}').encode()
    ),
    "a theme that is none": post(
        "/api/v2/users/me/appearance", b'{"theme_preference":"<script>","terminal_font":"\\u0000"}', method="PUT"
    ),
    "a push subscription to the metadata service": post(
        "/api/v2/users/me/webpush/subscription",
        b'{"endpoint":"https://169.254.169.254/","auth_key":"a","p256dh_key":"b"}',
    ),
    "a push subscription to a file": post(
        "/api/v2/users/me/webpush/subscription", b'{"endpoint":"file:///etc/passwd","auth_key":"a","p256dh_key":"b"}'
    ),
    "a push key that is no point": post(
        "/api/v2/users/me/webpush/subscription",
        b'{"endpoint":"https://example.com/x","auth_key":"AAAA","p256dh_key":"'
        + base64.urlsafe_b64encode(b"\x04" + bytes(64))
        + b'"}',
    ),
    "JSON merge of lists": post(
        "/api/v2/users/me/notifications/preferences", b'{"template_disabled_map":[]}', method="PUT"
    ),
    "1,000 notification preferences": post(
        "/api/v2/users/me/notifications/preferences",
        b'{"template_disabled_map":{'
        + b",".join(b'"00000000-0000-0000-0000-%012d":true' % n for n in range(1000))
        + b"}}",
        method="PUT",
    ),
    "an inbox id that is none": post("/api/v2/notifications/inbox/x/read-status", b'{"is_read":true}', method="PUT"),
    "a DNS-SD name": post("/api/v2/users/me/gitsshkey", b"[]", method="PUT"),
    "a user script as login": post("/api/v2/users/login", b'{"email":{"$ne":null},"password":{"$gt":""}}'),
    "a one-time passcode of lists": post(
        "/api/v2/users/otp/change-password", b'{"email":[],"password":{},"one_time_passcode":0}'
    ),
    "an OAuth2 token request in JSON": post("/oauth2/tokens", b'{"grant_type":["authorization_code"]}'),
    "an OAuth2 form of 10,000 fields": post("/oauth2/tokens", b"a=b&" * 10000, "application/x-www-form-urlencoded"),
    "an OAuth2 form with bad escapes": post(
        "/oauth2/tokens", b"grant_type=%&code=%zz&=&&;", "application/x-www-form-urlencoded"
    ),
    "an OAuth2 form of NULs": post(
        "/oauth2/tokens",
        b"grant_type=authorization_code&code=%00&client_id=%00&redirect_uri=%00",
        "application/x-www-form-urlencoded",
    ),
    "a CSP report of 60 KiB": post(
        "/api/v2/csp/reports", b'{"csp-report":{"blocked-uri":"' + b"\\u001b" * 9000 + b'"}}'
    ),
    "a CSP report that is a list": post("/api/v2/csp/reports", b"[[[]]]"),
    "a build of no version": post(
        "/api/v2/users/me/workspaces", b'{"name":"x","template_version_id":"00000000-0000-0000-0000-000000000000"}'
    ),
    "a workspace named -": post("/api/v2/users/me/workspaces", b'{"name":"-","template_id":"x"}'),
    "a workspace with a TTL of 10^18": post(
        "/api/v2/users/me/workspaces",
        b'{"name":"x","template_id":"00000000-0000-0000-0000-000000000000","ttl_ms":1000000000000000000}',
    ),
}
SEARCHES: dict[str, str] = {
    "nothing": "",
    "a quote": "'",
    "a quote and a comment": "' OR 1=1 --",
    "a stacked statement": "'; DROP TABLE users; --",
    "a union": "' UNION SELECT hashed_secret FROM api_keys --",
    "a sleep": "'||pg_sleep(10)||'",
    "a dollar quote": "$$a$$",
    "an escape text": "E'\\x00'",
    "a cast": "1::int/0",
    "a placeholder": "$1 :a %s ? {0}",
    "a percent": "%",
    "10,000 percents": "%" * 10000,
    "underscores": "_" * 5000,
    "a backslash": "\\",
    "10,000 backslashes": "\\" * 10000,
    "a NUL": "\0",
    "an unpaired surrogate": "%ED%A0%80",
    "a regular expression": "(a+)+$",
    "an open class": "[",
    "a star": "*",
    "stars and letters": "*a" * 3000,
    "a colon": ":",
    "a key without a value": "name:",
    "a value without a key": ":x",
    "an unknown key": "nothing:x",
    "a key 1,000 times": "name:a " * 1000,
    "a key twice": "name:a name:b",
    "an open quote": 'name:"a',
    "quotes only": '"' * 3000,
    "a quote in quotes": 'name:"a\\"b"',
    "an empty value in quotes": 'name:""',
    "a negation": "-name:a",
    "parentheses, 3,000 deep": "(" * 3000,
    "boolean words": "a OR b AND NOT (c)",
    "an id that is none": "template-id:x organization:x",
    "a date that is none": "last_used_before:x last_used_after:9999-99-99",
    "a date before the first": "last_used_before:0000-01-01T00:00:00Z",
    "a date after the last": "last_used_before:99999-01-01T00:00:00Z",
    "a date of infinity": "last_used_before:infinity",
    "a number of 5,000 digits": "has-ai-task:" + "9" * 5000,
    "a boolean that is none": "dormant:maybe outdated:2",
    "a status that is none": "status:\x1b[2J",
    "every status": "status:" + ",".join(["running", "stopped"] * 500),
    "a role that is none": "roles:../owner",
    "commas only": "owner:" + "," * 3000,
    "upper case": "OWNER:ME",
    "a Turkish i": "owner:\u0130\u0131",
    "a long s": "owner:\u017f",
    "ligatures": "owner:\ufb03" * 100,
    "directions": "\u202eowner:me",
    "spaces of Unicode": "owner:me\u2003name:\u00a0x",
    "combining marks": "a" + "\u0301" * 3000,
    "an emoji family": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 200,
    "a JSON path": "param:a=$.**",
    "a parameter filter": "param:a=b param:c",
    "2,000 parameter filters": "param:a=b " * 2000,
    "a parameter of quotes": 'param:"a\'b"="c\'d"',
    "a shared filter": "shared:true shared_with_user:' shared_with_group:'",
    "an LDAP filter": "*)(uid=*))(|(uid=*",
    "a template expression": "{{7*7}}${7*7}#{7*7}",
    "a path": "../../../../etc/passwd",
    "a line end": "a\r\nSet-Cookie: b=c",
    "a form feed": "a\fb\vc",
}
LISTS = ("/api/v2/workspaces", "/api/v2/users", "/api/v2/templates", "/api/v2/audit", "/api/v2/connectionlog")
QUERIES: dict[str, str] = {
    "a negative limit": "/api/v2/users?limit=-1",
    "a limit of 2^31": "/api/v2/users?limit=2147483648",
    "a limit of 2^64": "/api/v2/users?limit=18446744073709551616",
    "a limit of 5,000 digits": "/api/v2/users?limit=" + "9" * 5000,
    "a limit of other digits": "/api/v2/users?limit=" + quote("٥"),
    "a fraction as limit": "/api/v2/users?limit=1.5",
    "an exponent as limit": "/api/v2/users?limit=1e9",
    "a limit with underscores": "/api/v2/users?limit=1_0",
    "an empty limit": "/api/v2/users?limit=",
    "two limits": "/api/v2/users?limit=1&limit=2",
    "a negative offset": "/api/v2/users?offset=-1",
    "an offset of 2^63": "/api/v2/users?offset=9223372036854775808",
    "a cursor that is none": "/api/v2/users?after_id=x",
    "a cursor of a foreign kind": "/api/v2/users?after_id=00000000-0000-0000-0000-000000000000",
    "a cursor in braces": "/api/v2/users?after_id={00000000-0000-0000-0000-000000000000}",
    "a urn as cursor": "/api/v2/users?after_id=urn:uuid:00000000-0000-0000-0000-000000000000",
    "5,000 parameters": "/api/v2/users?" + "a=b&" * 5000,
    "1,000 ampersands": "/api/v2/users?" + "&" * 1000,
    "1,000 semicolons": "/api/v2/users?" + ";" * 1000,
    "a key of brackets": "/api/v2/users?q[$ne]=x&limit[]=1",
    "bad escapes": "/api/v2/users?q=%&limit=%zz",
    "invalid UTF-8": "/api/v2/users?q=%ff%fe",
    "a NUL": "/api/v2/users?q=%00",
    "double encoding": "/api/v2/users?q=%2527",
    "a plus": "/api/v2/users?q=a+b",
    "raw quotes": "/api/v2/users?q='\"<>",
    "a token in the query": "/api/v2/users/me?coder_session_token=x-y",
    "a redirect elsewhere": "/login?redirect=//evil.test",
    "a start after the end": "/api/v2/insights/daus?tz_offset=99999999999",
    "a time zone offset of letters": "/api/v2/insights/daus?tz_offset=x",
    "insights without times": "/api/v2/insights/templates",
    "insights of the year 0": "/api/v2/insights/templates?start_time=0000-01-01T00:00:00Z&end_time=9999-12-31T00:00:00Z",
    "insights of times that are none": "/api/v2/insights/templates?start_time=x&end_time=y",
    "insights in half hours": "/api/v2/insights/user-activity?start_time=2024-01-01T00:30:00Z&end_time=2024-01-02T00:00:00%2B99:99",
    "insights of an interval that is none": "/api/v2/insights/templates?start_time=2024-01-01T00:00:00Z&end_time=2024-01-02T00:00:00Z&interval=second",
    "insights of 5,000 templates": "/api/v2/insights/user-activity?start_time=2024-01-01T00:00:00Z&end_time=2024-01-02T00:00:00Z&template_ids="
    + "00000000-0000-0000-0000-000000000000," * 1500,
    "logs after 2^63": "/api/v2/workspaceagents/00000000-0000-0000-0000-000000000000/logs?after=9223372036854775808",
    "logs before a negative": "/api/v2/templateversions/00000000-0000-0000-0000-000000000000/logs?before=-9223372036854775809",
    "an avatar of a user with slashes": "/api/v2/users/a%2Fb",
    "a user named me%00": "/api/v2/users/me%00",
    "a user of 20,000 letters": "/api/v2/users/" + "a" * 20000,
    "an id with letters of another width": "/api/v2/users/" + quote("００００００００-0000-0000-0000-000000000000"),
    "an id with a line end": "/api/v2/users/00000000-0000-0000-0000-000000000000%0A",
    "a file id": "/api/v2/files/x",
    "a file in another format": "/api/v2/files/00000000-0000-0000-0000-000000000000?format=../x",
    "an icon outside": "/icon/../../../etc/passwd",
    "a program outside": "/bin/../../../etc/passwd",
    "a program of another system": "/bin/coder-%00-amd64",
    "a debug route": "/api/v2/debug/pprof/profile?seconds=600",
    "a debug route of coordination": "/api/v2/debug/coordinator",
    "swagger outside": "/swagger/../../etc/passwd",
    "documentation outside": "/docs/%2e%2e/%2e%2e/etc/passwd",
    "external auth of a provider with slashes": "/api/v2/external-auth/a%2fb/device",
    "a schema of a long host": "/.well-known/oauth-protected-resource/" + "a" * 5000,
    "SCIM without a key": "/scim/v2/Users?filter=userName%20eq%20%22x",
    "an application's path": "/@eve/w/apps/a/%2e%2e/%2e%2e/",
    "an application of a user with NUL": "/@%00/w/apps/a/",
    "a terminal of no agent": "/@eve/w.a/terminal?command=%00",
}


def _tar(name: str = "main.tf", data: bytes = b"", **fields: object) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        for key, value in fields.items():
            setattr(entry, key, value)
        tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _zip(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, data)
    return packed.getvalue()


_ZIPPED = _zip("main.tf", b"x")
UPLOADS: dict[str, bytes] = {
    "multipart": post(
        "/api/v2/files",
        b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx\r\n--b--',
        "multipart/form-data; boundary=b",
    ),
    "multipart without a boundary": post("/api/v2/files", b"x", "multipart/form-data"),
    "multipart with a boundary of 10 KiB": post(
        "/api/v2/users/login", b"x", "multipart/form-data; boundary=" + "b" * 10000
    ),
    "multipart of 5,000 parts as JSON": post(
        "/api/v2/authcheck", b"--b\r\n\r\nx\r\n" * 5000, "multipart/form-data; boundary=b"
    ),
    "multipart as OAuth2 form": post(
        "/oauth2/tokens",
        b'--b\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\nx\r\n' * 2000 + b"--b--",
        "multipart/form-data; boundary=b",
    ),
    "multipart headers without an end": post(
        "/oauth2/tokens", b"--b\r\n" + b"X: y\r\n" * 8000, "multipart/form-data; boundary=b"
    ),
    "multipart file as OAuth2 form": post(
        "/oauth2/tokens",
        b'--b\r\nContent-Disposition: form-data; name="a"; filename="/etc/x"\r\n\r\n' + b"x" * 50000 + b"\r\n--b--",
        "multipart/form-data; boundary=b",
    ),
    "a tar of nothing": post("/api/v2/files", bytes(1024), "application/x-tar"),
    "a tar cut in a header": post("/api/v2/files", _tar()[:100], "application/x-tar"),
    "a tar with a bad checksum": post("/api/v2/files", b"x" + _tar()[1:], "application/x-tar"),
    "a tar of an absolute name": post("/api/v2/files", _tar("/etc/passwd", b"x"), "application/x-tar"),
    "a tar of a device": post("/api/v2/files", _tar("d", type=tarfile.CHRTYPE), "application/x-tar"),
    "a tar of a negative size": post(
        "/api/v2/files", _tar()[:124] + b"\x80" + b"\xff" * 11 + _tar()[136:], "application/x-tar"
    ),
    "random bytes as tar": post("/api/v2/files", os.urandom(5000), "application/x-tar"),
    "a zip as tar": post("/api/v2/files", _ZIPPED, "application/x-tar"),
    "a tar as zip": post("/api/v2/files", _tar("a", b"x"), "application/zip"),
    "a zip without its end": post("/api/v2/files", _ZIPPED[:-22], "application/zip"),
    "a zip with a forged size": post(
        "/api/v2/files", _ZIPPED.replace(struct.pack("<I", 1), struct.pack("<I", 0x7FFFFFFF)), "application/zip"
    ),
    "a zip of 60,000 announced entries": post(
        "/api/v2/files", _ZIPPED[:-12] + b"\x60\xea\x60\xea" + _ZIPPED[-8:], "application/zip"
    ),
    "a zip whose directory is elsewhere": post(
        "/api/v2/files", _ZIPPED[:-6] + b"\xff\xff\xff\x7f\0\0", "application/zip"
    ),
    "a zip of 50 MB in 50 KiB": post("/api/v2/files", _zip("a", bytes(50 << 20)), "application/zip"),
    "a zip with a comment of 64 KiB": post(
        "/api/v2/files", _ZIPPED[:-2] + b"\xff\xff" + b"PK\x05\x06" * 16000, "application/zip"
    ),
    "a zip of an encrypted entry": post(
        "/api/v2/files", _ZIPPED.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\x01\0"), "application/zip"
    ),
    "a zip of an unknown method": post("/api/v2/files", _ZIPPED.replace(b"\x08\0", b"\x63\0"), "application/zip"),
    "an unknown type": post("/api/v2/files", b"x", "application/x-7z-compressed"),
    "no type": post("/api/v2/files", b"x", ""),
}


JSON_TRIES = [wire("api", f"JSON: {name}", post("/api/v2/authcheck", body)) for name, body in JSON.items()]
BODY_TRIES = [wire("api", f"field: {name}", whole) for name, whole in OTHER_BODIES.items()]
SEARCH_TRIES: list[WireTry] = [
    wire(
        "postgres",
        f"search: {name}",
        *(get(f"{path}?q={quote(text) if '%ED' not in text else text}") for path in LISTS),
    )
    for name, text in SEARCHES.items()
]
QUERY_TRIES = [wire("api", f"address: {name}", get(path)) for name, path in QUERIES.items()]
UPLOAD_TRIES = [wire("api", f"upload: {name}", whole) for name, whole in UPLOADS.items()]
TRIES = [*JSON_TRIES, *BODY_TRIES, *SEARCH_TRIES, *QUERY_TRIES, *UPLOAD_TRIES]
