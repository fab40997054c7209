// The backups view: the bundles, what speaks against restoring each, and making, proving and restoring one.

import { backUp, getJson, restoreBundle, verifyBundle } from "./api.js";
import { byId, count, element } from "./dom.js";

const POLL_MS = 1_000;
const DONE = { export: "exported", verify: "proved", restore: "restored" };
let timer = null;

/** Shows the list, and goes on asking while work is under way. */
export async function showBackups() {
  document.title = "Backups · Stemma";
  await load();
}

async function load() {
  clearTimeout(timer);
  try {
    const { bundles, work } = await getJson("/api/backups/rag");
    byId("bundle-rows").replaceChildren(...bundles.map((bundle) => row(bundle, work?.state === "running")));
    byId("export-bundle").disabled = work?.state === "running";
    say(work ? sentence(work) : bundles.length ? "" : "There is no bundle yet.", work?.state === "failed");
    if (work?.state === "running" && !byId("view-backups").hidden) timer = setTimeout(load, POLL_MS);
  } catch (problem) {
    say(problem.message, true);
  }
}

function sentence(work) {
  const name = work.bundle ?? work.result?.name ?? "the corpus";
  if (work.state === "failed") return `${name} was not ${DONE[work.kind]}: ${work.message}`;
  if (work.state === "running") return `${name} is being ${DONE[work.kind]}: ${work.whole ? Math.floor((100 * work.done) / work.whole) : 0} %`;
  if (work.kind === "export" && !work.result.new) return `Nothing changed since ${name}: no new bundle was made.`;
  return `${name} was ${DONE[work.kind]}: ${count(work.result.n_documents, "document")}, ${count(work.result.n_chunks, "passage")}.`;
}

function row(bundle, busy) {
  const differing = bundle.drift.map((part) => `${part.name} was ${part.bundle}, is ${part.here}`).join("; ");
  const why = bundle.reason ? `${bundle.field}: ${bundle.reason}` : differing && `Stale after a restore: ${differing}`;
  const sound = bundle.verdict === "ok";
  const button = (label, act) => element("button", { type: "button", disabled: busy || !sound, onclick: () => begin(act) }, label);
  return element("tr", {},
    element("td", {}, bundle.name, why ? element("p", { className: "path" }, why) : null),
    element("td", {}, bundle.created_at ? new Date(bundle.created_at).toLocaleString() : ""),
    element("td", {}, element("span", { className: `status ${sound ? "ready" : "failed"}` }, sound ? "sound" : bundle.verdict)),
    element("td", { className: "number" }, bundle.documents === null ? "" : count(bundle.documents)),
    element("td", { className: "number" }, `${(bundle.size_bytes / 1e6).toFixed(1)} MB`),
    element("td", {}, button("Prove", () => verifyBundle(bundle.name)), " ", element("button", { type: "button", className: "danger", disabled: busy || !sound, onclick: () => ask(bundle) }, "Restore …")));
}

async function begin(act) {
  try {
    await act();
    await load();
  } catch (problem) {
    say(problem.message, true);
  }
}

function ask(bundle) {
  const dialog = byId("restore-dialog");
  byId("restore-question").textContent = `Replace everything that is published by ${bundle.name}?`;
  dialog.returnValue = "cancel";
  dialog.onclose = () => dialog.returnValue === "restore" && begin(() => restoreBundle(bundle.name));
  dialog.showModal();
}

function say(text, failed = false) {
  byId("backups-state").textContent = text;
  byId("backups-state").classList.toggle("error", failed);
}

byId("export-bundle").addEventListener("click", () => begin(backUp));
