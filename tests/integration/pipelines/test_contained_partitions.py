"""Documents inside other files are partitions like any other, and their container's partition names them."""

from email.message import EmailMessage

import dagster as dg

from resources.recorder import CHAIN


def test_an_attachment_is_a_partition_of_every_asset_and_its_mail_names_it(pipeline, corpus):
    message = EmailMessage()
    message["Subject"] = "Herons"
    message.set_content("See the note.")
    message.add_attachment("A heron stands in the reeds.", filename="note.txt")
    corpus.write("a.eml", message.as_bytes())
    for expected in ("a.eml", "a.eml//note.txt"):
        [batch] = corpus.look().batches
        assert batch.partitions == (expected,)
        assert pipeline.batch_run(batch).success
        assert all(pipeline.version(asset, expected) for asset in CHAIN)
    records = pipeline.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("documents"), asset_partitions=["a.eml"]), limit=1
    ).records
    metadata = records[0].event_log_entry.asset_materialization.metadata
    assert metadata["contained"].value == 1 and metadata["contained_partitions"].value == "a.eml//note.txt"
