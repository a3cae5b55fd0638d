"""Upload and download of archives."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import read_bytes, reply
from coder.coderd.http.query import path_uuid
from coder.coderd.services import files
from coder.coderd.services.errors import Invalid, TooLarge

blueprint = Blueprint("files", __name__, url_prefix="/api/v2/files")


@blueprint.post("")
@authenticated
async def post_file() -> Response:
    try:
        data = await read_bytes(files.MAX_UPLOAD)
    except TooLarge as error:
        raise Invalid("Failed to read file from request.", "http: request body too large") from error
    file_id, new = await files.upload(context(), subject(), request.headers.get("Content-Type", ""), data)
    return reply({"hash": file_id}, 201 if new else 200)


@blueprint.get("/<file_id>")
@authenticated
async def get_file(file_id: str) -> Response:
    kind, data = await files.download(context(), subject(), path_uuid(file_id), request.args.get("format", ""))
    return Response(data, content_type=kind)
