// Files that are dropped on the library, or chosen, are stored in the folder that is shown.

import { uploadFiles } from "./api.js";
import { byId, count } from "./dom.js";
import { reload } from "./documents.js";

async function upload(files) {
  if (files.length === 0) return;
  const form = new FormData();
  form.set("folder", byId("documents-folder").value);
  for (const file of files) {
    form.append("files", file, file.name);
    form.append("modified_ms", file.lastModified);
  }
  say(`Uploading ${count(files.length, "file")} …`);
  try {
    const { files: report } = await uploadFiles(form);
    await reload();
    say(...outcome(report));
  } catch (problem) {
    say(problem.message, true);
  }
}

function outcome(report) {
  const number = (kind) => report.filter((file) => file.outcome === kind).length;
  const refused = report.filter((file) => file.outcome === "refused");
  const sentences = [
    number("stored") ? `${count(number("stored"), "file")} stored.` : "",
    number("duplicate") ? `${count(number("duplicate"), "file")} there already.` : "",
    ...refused.map((file) => `${file.name}: ${file.message}`),
  ];
  return [sentences.filter(Boolean).join(" "), refused.length > 0];
}

function say(text, failed = false) {
  byId("upload-state").textContent = text;
  byId("upload-state").classList.toggle("error", failed);
}

byId("upload-files").addEventListener("change", async (event) => {
  await upload([...event.target.files]);
  event.target.value = ""; // the same file may be chosen again
});

const view = byId("view-documents");
const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
view.addEventListener("dragover", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  byId("drop").classList.add("over");
});
view.addEventListener("dragleave", () => byId("drop").classList.remove("over"));
view.addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  byId("drop").classList.remove("over");
  upload([...event.dataTransfer.files]);
});
