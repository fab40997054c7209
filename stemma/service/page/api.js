// The query service over HTTP; a refusal is thrown as a Problem with its stable code.

export class Problem extends Error {
  constructor(status, body) {
    super([body.detail, body.remedy].filter(Boolean).join(" ") || `The service answered ${status}.`);
    this.status = status;
    this.code = body.code ?? null;
    this.body = body;
  }
}

async function request(path, options = {}) {
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

const postJson = (path, body, signal) =>
  getJson(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

export const search = (body, signal) => postJson("/api/search", body, signal);
export const deleteDocuments = (body) => postJson("/api/documents/delete", body);
export const bringUpToDate = () => postJson("/api/ingest", {});

const bundle = (name, what) => `/api/backups/rag/${encodeURIComponent(name)}/${what}`;
export const backUp = () => postJson("/api/backups/rag", {});
export const verifyBundle = (name) => postJson(bundle(name, "verify"), {});
export const restoreBundle = (name) => postJson(bundle(name, "restore"), { replace: true });
