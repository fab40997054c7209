"""A server for tests: it does not wait for the disk, since no test takes the machine's power away, and a process that is killed leaves its
writes to the kernel; and a migrated database to copy."""

import psycopg

from stemma.store import embedded, migrations, postgres


def prepare_server(url: str) -> None:
    """Make commits cheap, and `template_stemma`."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    template = url.replace("/stemma?", "/template_stemma?")
    embedded.ensure_database(template)
    with postgres.connect(template) as connection:
        migrations.upgrade(connection)
