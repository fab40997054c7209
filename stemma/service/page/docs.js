// The API's description: the operations of /openapi.json, to read and to try. Nothing is loaded from elsewhere.

import { byId, element } from "./dom.js";

const schemaOf = (description, schema) => (schema?.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)] : schema);

/** "list of Hit", "string or null", "integer". */
function typeName(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties) return `object of ${typeName(schema.additionalProperties)}`;
  return schema.format ? `${schema.type} (${schema.format})` : (schema.type ?? "anything");
}

/** Every schema that this one names, itself first, each once. */
function reachable(description, schema, found = new Map()) {
  if (!schema || typeof schema !== "object") return found;
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    if (found.has(name)) return found;
    found.set(name, description.components.schemas[name]);
    return reachable(description, found.get(name), found);
  }
  for (const part of Object.values(schema)) reachable(description, part, found);
  return found;
}

/** Text with its `code` set as code. */
const prose = (text) => text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

function fields(schema) {
  return element("table", { className: "fields" },
    element("tbody", {}, Object.entries(schema.properties ?? {}).map(([name, field]) =>
      element("tr", {},
        element("td", {}, element("code", {}, name), schema.required?.includes(name) ? element("span", { className: "required" }, "required") : null),
        element("td", {}, typeName(field)),
        element("td", {}, prose(field.description ?? ""))))));
}

function schemas(description, schema) {
  return [...reachable(description, schema)].map(([name, named]) =>
    element("details", {}, element("summary", {}, element("code", {}, name), " ", element("span", { className: "place" }, named.description?.split("\n")[0] ?? "")), fields(named)));
}

function tryForm(method, path, operation, description) {
  const inputs = (operation.parameters ?? []).map((parameter) => {
    const input = element("input", { type: "text", required: parameter.required ?? false, placeholder: parameter.example ?? "" });
    return { parameter, input, label: element("label", {}, element("code", {}, parameter.name), input, element("span", { className: "place" }, parameter.description ?? "")) };
  });
  const content = operation.requestBody?.content["application/json"];
  const example = content && schemaOf(description, content.schema).examples?.[0];
  const body = content ? element("textarea", { rows: 6, spellcheck: false, value: JSON.stringify(example ?? {}, null, 2), "aria-label": "Body of the request" }) : null;
  const answer = element("pre", { className: "answer", hidden: true, tabIndex: 0, "aria-label": "Answer" });
  const send = async (event) => {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    for (const { parameter, input } of inputs) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(parameter.name, input.value);
    }
    const began = performance.now();
    const options = body ? { method, body: body.value, headers: { "Content-Type": "application/json" } } : { method };
    const response = await fetch(query.size ? `${address}?${query}` : address, options).catch((error) => error);
    answer.hidden = false;
    if (!(response instanceof Response)) {
      answer.textContent = String(response);
      return;
    }
    const text = await response.text();
    const shown = response.headers.get("content-type")?.includes("json") ? JSON.stringify(JSON.parse(text), null, 2) : text;
    answer.textContent = `${response.status} in ${Math.round(performance.now() - began)} ms\n\n${shown.slice(0, 100_000)}`;
  };
  return element("form", { className: "try", onsubmit: send }, inputs.map(({ label }) => label), body, element("button", { type: "submit" }, "Send"), answer);
}

function operation(description, path, method, described) {
  const request = described.requestBody?.content["application/json"]?.schema;
  const answers = Object.entries(described.responses).map(([status, response]) => {
    const schema = Object.values(response.content ?? {})[0]?.schema;
    return element("tr", {}, element("td", {}, element("code", {}, status)), element("td", {}, Object.keys(response.content ?? {}).join(", ")),
      element("td", {}, schema ? `${typeName(schema)}. ` : "", prose(response.description ?? "")));
  });
  const good = Object.values(described.responses["200"]?.content ?? {})[0]?.schema;
  return element("section", { className: "operation", id: described.operationId },
    element("h2", {}, element("span", { className: `verb ${method}` }, method.toUpperCase()), " ", element("code", {}, path)),
    element("p", { className: "title" }, described.summary ?? ""),
    ...(described.description ?? "").split("\n\n").filter(Boolean).map((paragraph) => element("p", {}, prose(paragraph))),
    element("h3", {}, "Try it"), tryForm(method.toUpperCase(), path, described, description),
    request ? element("h3", {}, "Request") : null, request ? schemas(description, request) : null,
    element("h3", {}, "Responses"), element("table", { className: "fields" }, element("tbody", {}, answers)), schemas(description, good));
}

const response = await fetch("/openapi.json");
const description = await response.json();
byId("operations").replaceChildren(
  element("h1", {}, `${description.info.title} ${description.info.version}`),
  ...description.info.description.split("\n\n").map((paragraph) => element("p", {}, prose(paragraph))),
  ...Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => operation(description, path, method, described))));
