"""The search structure of a vector table (HNSW, cosine): an operational choice, made and made again while searches go on."""

from dataclasses import dataclass

from psycopg import sql

from sql import load_queries
from stemma.errors import RequestError
from stemma.store.locks import giving_way
from stemma.store.postgres import LOCK_TIMEOUT_MS, Connection

M, EF_CONSTRUCTION = 16, 64
"""pgvector's own defaults."""
M_BOUNDS, EF_BOUNDS = (2, 100), (4, 1_000)


class InvalidHnsw(RequestError):
    """pgvector builds no search structure with these parameters."""

    code = "invalid_hnsw"
    remedy = f"m is {M_BOUNDS[0]} to {M_BOUNDS[1]}; ef_construction is {EF_BOUNDS[0]} to {EF_BOUNDS[1]} and at least twice m."


@dataclass(frozen=True)
class Hnsw:
    """A search structure. A larger `m` or `ef_construction` finds more of the nearest, and takes longer to build."""

    m: int = M
    ef_construction: int = EF_CONSTRUCTION

    def __post_init__(self) -> None:
        m_fits, ef_fits = M_BOUNDS[0] <= self.m <= M_BOUNDS[1], EF_BOUNDS[0] <= self.ef_construction <= EF_BOUNDS[1]
        if not (m_fits and ef_fits and self.ef_construction >= 2 * self.m):
            raise InvalidHnsw(f"m is {self.m}, ef_construction is {self.ef_construction}")


@dataclass(frozen=True)
class BuiltHnsw:
    """One that the catalogue knows."""

    hnsw: Hnsw
    whole: bool
    """False: its build was cut off, and searches do not use it."""
    n_bytes: int


def create_hnsw(connection: Connection, vector_table: str) -> None:
    """Make the search structure of a new, empty table, in the caller's transaction."""
    connection.execute(_create(vector_table, _name(vector_table), Hnsw(), sql.SQL("")))


def hnsw_of(connection: Connection, vector_table: str) -> BuiltHnsw | None:
    """The search structure that searches of this table use; None without one."""
    return _built(connection, vector_table, _name(vector_table))


def build_hnsw(connection: Connection, vector_table: str, hnsw: Hnsw | None = None, *, again: bool = False) -> bool:
    """Make the search structure from the rows of the table, beside the one in use, then exchange them; nothing waits for the build.

    A build that was cut off is begun anew; one that was finished and not exchanged is taken. The caller holds INDEX_LOCK on a connection in autocommit.

    Args:
        hnsw: None: the parameters in use, or the default ones.
        again: also when the one in use is whole and has these parameters.
    Returns:
        Whether anything was built or exchanged.
    Raises:
        psycopg's LockNotAvailable: searches kept the old one for more than ten seconds.
    """
    used = hnsw_of(connection, vector_table)
    hnsw = hnsw or (used.hnsw if used else Hnsw())
    if used and used.whole and used.hnsw == hnsw and not again:
        return False
    name, following = _name(vector_table), f"{vector_table}_hnsw_next"
    built = _built(connection, vector_table, following)
    if built is None or not built.whole or built.hnsw != hnsw:
        connection.execute("SET lock_timeout = 0")  # the build waits for every transaction that is older than it
        try:
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(following)))
            connection.execute(_create(vector_table, following, hnsw, sql.SQL("CONCURRENTLY")))
        finally:
            if not connection.closed:
                connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT_MS)))

    def exchange() -> None:
        connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("ALTER INDEX {} RENAME TO {}").format(sql.Identifier(following), sql.Identifier(name)))

    giving_way(connection, exchange)
    return True


def _name(vector_table: str) -> str:
    return f"{vector_table}_hnsw"


def _create(vector_table: str, name: str, hnsw: Hnsw, how: sql.SQL) -> sql.Composed:
    return sql.SQL(
        "CREATE INDEX {how} {name} ON {table} USING hnsw (embedding vector_cosine_ops) WITH (m = {m}, ef_construction = {ef_construction})"
    ).format(
        how=how,
        name=sql.Identifier(name),
        table=sql.Identifier(vector_table),
        m=sql.Literal(hnsw.m),
        ef_construction=sql.Literal(hnsw.ef_construction),
    )


def _built(connection: Connection, vector_table: str, name: str) -> BuiltHnsw | None:
    row = connection.execute(load_queries("corpus_indexes")["hnsw_of"], {"name": name, "table": vector_table}).fetchone()
    return BuiltHnsw(Hnsw(row[0], row[1]), row[2], row[3]) if row else None
