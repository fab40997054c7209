"""`stemma reembed`: embed the corpus by another model beside the active one, and switch when it is whole."""

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import command, counting, note, print_json
from stemma.errors import RequestError

if TYPE_CHECKING:
    from stemma.stages.installation import Installation
    from stemma.stages.reembed import Plan, Reembedded
    from stemma.store.embedding_indexes import EmbeddingIndex


class ContradictoryOptions(RequestError):
    """Options ask for several things of which only one can be done."""

    code, remedy = "contradictory_options", "Give one of them."


@command
def reembed(
    *,
    model: Annotated[
        str | None, typer.Option(help="`minilm` or a local sentence-transformers folder; default: EMBEDDING_MODEL.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Go back to the model that was active before.")] = False,
    abandon: Annotated[bool, typer.Option("--abandon", help="Stop building what is not active.")] = False,
    drop_retired: Annotated[bool, typer.Option("--drop-retired", help="Drop the vectors of models that are no longer active.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Embed the corpus by another model.

    A second index is filled beside the active one; searches stay on that until every published chunk has its vector, then one transaction switches, and EMBEDDING_MODEL names the new model. It may be stopped at any time: the next call goes on. The old vectors are kept for --rollback until --drop-retired.

    \b
    Examples:
      stemma reembed --model ~/models/multilingual-e5-small --dry-run
      stemma reembed --model ~/models/multilingual-e5-small
      stemma reembed --rollback
      stemma reembed --drop-retired
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages import reembed as reembedding
    from stemma.stages.installation import Installation

    asked = {"--model": model is not None, "--rollback": rollback, "--abandon": abandon, "--drop-retired": drop_retired}
    if len(chosen := [name for name, given in asked.items() if given]) > 1 or (dry_run and (abandon or drop_retired)):
        raise ContradictoryOptions(f"{' and '.join(chosen + ['--dry-run'] * dry_run)} do not go together")
    settings = load_settings()
    with corpus_database(settings), closing(Installation(settings)) as here:
        if abandon or drop_retired:
            ended = reembedding.abandon_reembed(here) if abandon else reembedding.drop_retired_indexes(here)
            _say_ended(ended, "abandoned" if abandon else "dropped", as_json=as_json)
        elif dry_run:
            _say_plan(reembedding.plan_reembed(here, model, rollback=rollback), as_json=as_json)
        else:
            _say_done(_reembed(here, model, rollback=rollback, show=not as_json), as_json=as_json)


def _reembed(here: "Installation", model: str | None, *, rollback: bool, show: bool) -> "Reembedded":
    from stemma.stages.reembed import reembed as embed_anew

    with counting("Embedding chunks", show=show) as draw:
        return embed_anew(here, model, rollback=rollback, progress=lambda covered: draw(covered.n_covered, covered.n_chunks))


def _say_plan(plan: "Plan", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(plan))
        return
    print(f"{plan.model}, {plan.dimension} dimensions: {plan.coverage.n_covered} of {plan.coverage.n_chunks} chunks have their vector")
    print(f"  {plan.cost.n_chunks} chunks to fill, {plan.cost.n_strings} distinct strings, {plan.cost.n_model_calls} of them for the model")


def _say_done(done: "Reembedded", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
        return
    print(f"Filled {done.n_filled} of {done.n_chunks} chunks; the model was asked for {done.n_embedded} strings.")
    if done.switched:
        print(f"Searches read the vectors of {done.model} from now on; those of {done.previous} are kept for `stemma reembed --rollback`.")
    else:
        note(f"Searches read the vectors of {done.model} already.")


def _say_ended(ended: "list[EmbeddingIndex]", what: str, *, as_json: bool) -> None:
    rows: list[dict[str, Any]] = [{"embedding_index_id": index.embedding_index_id, "model": index.spec.model} for index in ended]
    if as_json:
        print_json({what: rows})
        return
    for row in rows:
        print(f"{what} index {row['embedding_index_id']} of {row['model']}")
    if not rows:
        note(f"Nothing is there to be {what}. One that was retired a moment ago may still be read by a search.")
