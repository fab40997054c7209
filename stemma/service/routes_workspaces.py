"""`/api/workspaces`: first folders of the library, and what they are called."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path

from stemma.library.workspaces import LinkedRootsNotBuilt, create_workspace, list_workspaces, rename_workspace, roots_of
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies_library import NewRoot, RootBody, RootList, WorkspaceBody, WorkspaceList, WorkspaceName
from stemma.service.problems import PROBLEMS, Problem
from stemma.service.routes_search import RunningService
from stemma.store.postgres import explained

router = APIRouter(prefix="/api/workspaces", tags=["workspaces"])

ONE: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "`unknown_workspace`."}, **PROBLEMS}


@router.get("", responses=PROBLEMS, summary="List workspaces")
def read_workspaces(service: RunningService) -> WorkspaceList:
    """Those without documents too."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        return WorkspaceList(workspaces=[WorkspaceBody.model_validate(workspace) for workspace in list_workspaces(connection)])


@router.post(
    "", status_code=201, responses=PROBLEMS | {409: {"model": Problem, "description": "`workspace_exists`."}}, summary="Make a workspace"
)
def make_workspace(body: WorkspaceName, service: RunningService) -> WorkspaceBody:
    """With a folder of the library, called after it: what is put there belongs to it."""
    with explained(), service.pool.connection() as connection:
        return WorkspaceBody.model_validate(
            create_workspace(connection, body.name, library=service.settings.library, now=datetime.now(UTC))
        )


@router.patch("/{key}", responses=ONE, summary="Rename a workspace")
def name_workspace(
    key: Annotated[str, Path(description="Key of the workspace.", examples=["handbook"])], body: WorkspaceName, service: RunningService
) -> WorkspaceBody:
    """What it is called changes; its key, and so its folder, stay."""
    with explained(), service.pool.connection() as connection:
        return WorkspaceBody.model_validate(rename_workspace(connection, without_unstorable(key), body.name, now=datetime.now(UTC)))


@router.get("/{key}/roots", responses=ONE, summary="Where the files of a workspace lie")
def read_roots(key: Annotated[str, Path(description="Key of the workspace.", examples=["handbook"])], service: RunningService) -> RootList:
    """The managed root is its folder of the library; every workspace has one."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        return RootList(roots=[RootBody.model_validate(root) for root in roots_of(connection, without_unstorable(key))])


@router.post("/{key}/roots", status_code=201, responses=ONE, summary="Link a folder elsewhere")
def link_root(
    key: Annotated[str, Path(description="Key of the workspace.", examples=["handbook"])], body: NewRoot, service: RunningService
) -> RootBody:
    """Refused: it is foreseen, and not built. A workspace takes its files from the library alone."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        roots_of(connection, without_unstorable(key))
    raise LinkedRootsNotBuilt(f"{body.name!r} cannot be linked")
