// The query service over HTTP; a refusal is thrown as a Problem with its stable code.

export class Problem extends Error {
  constructor(status, body) {
    super([body.detail, body.remedy].filter(Boolean).join(" ") || `The service answered ${status}.`);
    this.status = status;
    this.code = body.code ?? null;
    this.body = body;
  }
}

export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "service_unreachable", detail: "The query service does not answer.", remedy: "Check `stemma status`." });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Problem(response.status, body);
}

export const getJson = async (path, options) => (await request(path, options)).json();
export const getText = async (path, options) => (await request(path, options)).text();

const sending = (method, body, signal) => ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
const postJson = (path, body, signal) => getJson(path, sending("POST", body, signal));

export const search = (body, signal) => postJson("/api/search", body, signal);
export const deleteDocuments = (body) => postJson("/api/documents/delete", body);
export const retryDocument = (id) => postJson(`/api/documents/${encodeURIComponent(id)}/retry`, {});
export const uploadFiles = (form) => getJson("/api/upload", { method: "POST", body: form });
export const bringUpToDate = () => postJson("/api/ingest", {});

const bundle = (name, what) => `/api/backups/rag/${encodeURIComponent(name)}/${what}`;
export const backUp = () => postJson("/api/backups/rag", {});
export const verifyBundle = (name) => postJson(bundle(name, "verify"), {});
export const restoreBundle = (name) => postJson(bundle(name, "restore"), { replace: true });

const conversation = (id) => `/api/conversations/${encodeURIComponent(id)}`;
export const ask = (body, signal) => request("/api/chat", sending("POST", body, signal));
export const readMessages = (id, cursor) => getJson(`${conversation(id)}/messages?limit=200&cursor=${cursor}`);
export const renameConversation = (id, title) => getJson(conversation(id), sending("PATCH", { title }));
export const deleteConversation = (id) => request(conversation(id), { method: "DELETE" });

export const patchSettings = (settings, dryRun) => getJson("/api/settings", sending("PATCH", { settings, dry_run: dryRun }));
