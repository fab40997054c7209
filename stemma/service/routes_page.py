"""The page at `/`, its files, and the description of the API at `/docs`: all served from here, nothing from elsewhere."""

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

PAGE = Path(__file__).parent / "page"

router = APIRouter(include_in_schema=False)


@router.get("/")
def page() -> FileResponse:
    """The search page."""
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


@router.get("/docs")
def docs() -> FileResponse:
    """The operations of /openapi.json, to read and to try."""
    return FileResponse(PAGE / "docs.html", headers={"Cache-Control": "no-cache"})


class _Revalidated(StaticFiles):
    """Files that browsers ask for again, by their ETag, so that an upgrade shows at once."""

    def file_response(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def install_page(app: FastAPI) -> None:
    """Serve the page and its files."""
    app.include_router(router)
    app.mount("/page", _Revalidated(directory=PAGE), name="page")
