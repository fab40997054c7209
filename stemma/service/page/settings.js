// The settings view: every setting, what a change would make stale and what that costs, and the change itself.

import { getJson, patchSettings } from "./api.js";
import { byId, count, element } from "./dom.js";

/** Shows every setting as it is now. */
export async function showSettings() {
  document.title = "Settings · Stemma";
  try {
    show(await getJson("/api/settings"), "");
  } catch (problem) {
    say(problem.message, true);
  }
}

function show(report, before) {
  byId("setting-rows").replaceChildren(...report.settings.map(row));
  say(`${before}${price(report, "out of date")}`);
}

function row({ name, value, source, stage, description, allowed, overridable }) {
  const text = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const field = element("input", { type: "text", name, defaultValue: text, title: allowed, autocomplete: "off", spellcheck: false, "aria-label": name });
  const shown = overridable ? field : element("code", {}, text);
  const back = source === "override" ? element("button", { type: "button", className: "retry", onclick: () => send({ [name]: null }, false) }, `Take ${name} back`) : null;
  return element("tr", {},
    element("td", {}, element("code", {}, name), element("p", { className: "path" }, description)),
    element("td", {}, shown, back), element("td", {}, source), element("td", {}, stage));
}

/** The fields that were changed; one that was emptied goes back to its default. */
function changes() {
  const fields = [...byId("setting-rows").querySelectorAll("input")].filter((field) => field.value !== field.defaultValue);
  return Object.fromEntries(fields.map((field) => [field.name, field.value.trim() || null]));
}

async function send(settings, dryRun) {
  if (Object.keys(settings).length === 0) return say("Nothing was changed.");
  try {
    const report = await patchSettings(settings, dryRun);
    if (dryRun) say(`With this, ${price(report, "would be out of date")}`);
    else show(report, "Saved. ");
  } catch (problem) {
    say(problem.message, true);
  }
}

function price({ stale, cost }, verb) {
  if (stale === 0) return `no document ${verb === "out of date" ? "is" : ""} ${verb}.`.replace("  ", " ");
  const calls = [[cost.parse_calls, "to parse"], [cost.context_calls, "contexts to ask for"], [cost.embed_calls, "passages to embed"]];
  const work = calls.filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`).join(", ");
  const time = cost.seconds === null ? "" : `, about ${count(Math.ceil(cost.seconds / 60), "minute")}`;
  return `${count(stale, "document")} ${verb}: ${count(cost.runs, "run")}${work ? `, ${work}` : ""}${time}.`;
}

function say(text, failed = false) {
  byId("settings-state").textContent = text;
  byId("settings-state").classList.toggle("error", failed);
}

byId("estimate-settings").addEventListener("click", () => send(changes(), true));
byId("settings-form").addEventListener("submit", (event) => {
  event.preventDefault();
  send(changes(), false);
});
