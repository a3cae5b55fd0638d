"use strict";
// Shows /swagger/doc.json: operations by tag, searchable; schemas are written out as example-like outlines.

const METHODS = ["get", "post", "put", "patch", "delete"];
let description = null;

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function named(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : "";
}

// One schema as indented text; a type inside itself is named and not opened again.
function outline(schema, depth = 0, open = []) {
  const pad = "  ".repeat(depth);
  if (!schema || Object.keys(schema).length === 0) return "any";
  const name = named(schema);
  if (name) {
    if (open.includes(name) || depth > 6) return name;
    return outline(description.components.schemas[name], depth, [...open, name]);
  }
  if (schema.allOf) {
    const merged = schema.allOf.reduce((all, part) => ({ ...all, ...(part.$ref ? description.components.schemas[named(part)] : part),
      required: [...(all.required || []), ...((part.$ref ? description.components.schemas[named(part)] : part).required || [])] }), {});
    return outline(merged, depth, open);
  }
  if (schema.anyOf) return schema.anyOf.map((part) => outline(part, depth, open)).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return "[" + outline(schema.items, depth, open) + "]";
  if (schema.properties) {
    const required = new Set(schema.required || []);
    const lines = Object.entries(schema.properties).map(([key, value]) =>
      `${pad}  ${key}${required.has(key) ? "" : "?"}: ${outline(value, depth + 1, open)}`);
    return lines.length ? `{\n${lines.join("\n")}\n${pad}}` : "{}";
  }
  if (schema.type === "object") {
    const rest = schema.additionalProperties;
    return rest && typeof rest === "object" ? `{ [key]: ${outline(rest, depth, open)} }` : "object";
  }
  return [].concat(schema.type).join(" | ") + (schema.format ? ` (${schema.format})` : "");
}

function example(schema, open = []) {
  const name = named(schema);
  if (name) return open.includes(name) ? null : example(description.components.schemas[name], [...open, name]);
  if (!schema) return null;
  if (schema.allOf) return example(schema.allOf[0], open);
  if (schema.anyOf) return example(schema.anyOf.find((part) => part.type !== "null"), open);
  if (schema.enum) return schema.enum.find((value) => value !== "") ?? "";
  if (schema.properties) {
    const wanted = schema.required && schema.required.length ? schema.required : Object.keys(schema.properties);
    return Object.fromEntries(wanted.map((key) => [key, example(schema.properties[key], open)]));
  }
  if (schema.type === "array") return [];
  if (schema.type === "boolean") return false;
  if (schema.type === "integer" || schema.type === "number") return 0;
  if (schema.format === "uuid") return "00000000-0000-0000-0000-000000000000";
  return schema.type === "string" ? "…" : {};
}

function quoted(text) {
  return "'" + text.replace(/'/g, "'\\''") + "'";
}

function curl(method, path, operation) {
  const needed = (operation.parameters || []).filter((item) => item.in === "query" && item.required);
  const query = needed.map((item) => `${item.name}=…`).join("&");
  const parts = [`curl -X ${method.toUpperCase()} ${quoted(location.origin + path + (query ? "?" + query : ""))}`];
  const scheme = operation.security && Object.keys(operation.security[0])[0];
  if (scheme) parts.push(`-H ${quoted(description.components.securitySchemes[scheme].name + ": $TOKEN")}`.replace("$TOKEN'", "'\"$CODER_SESSION_TOKEN\""));
  const body = operation.requestBody && operation.requestBody.content;
  if (body) {
    const [type, content] = Object.entries(body)[0];
    parts.push(`-H ${quoted("Content-Type: " + type)}`);
    parts.push(content.schema ? `-d ${quoted(JSON.stringify(example(content.schema)))}` : "--data-binary @FILE");
  }
  return parts.join(" \\\n  ");
}

function typeLine(content) {
  const [type, value] = Object.entries(content)[0];
  const name = named(value.schema);
  return { label: name ? `${name} · ${type}` : type, text: value.schema ? outline(value.schema) : "" };
}

function parameters(operation) {
  const rows = (operation.parameters || []).map((item) => element("tr", {},
    element("td", {}, element("code", {}, item.name + (item.required ? "" : "?"))),
    element("td", {}, item.in), element("td", {}, outline(item.schema)), element("td", {}, item.description || "")));
  return rows.length ? [element("h3", {}, "Parameters"), element("table", {}, ...rows)] : [];
}

function answers(operation) {
  const parts = [element("h3", {}, "Answers")];
  for (const [status, answer] of Object.entries(operation.responses)) {
    const shown = answer.content ? typeLine(answer.content) : { label: "", text: "" };
    parts.push(element("div", {}, element("strong", {}, status), ` ${answer.description} `, element("code", {}, shown.label)));
    if (shown.text && Number(status) < 400) parts.push(element("pre", {}, shown.text));
  }
  return parts;
}

function inside(method, path, operation) {
  const parts = [];
  if (operation.description) parts.push(element("p", {}, operation.description));
  const scheme = operation.security ? operation.security.map((item) => Object.keys(item)[0] || "nothing").join(" or ") : "";
  parts.push(element("p", {}, scheme ? `Needs: ${scheme}` : "Public."));
  parts.push(...parameters(operation));
  if (operation.requestBody) {
    const shown = typeLine(operation.requestBody.content);
    parts.push(element("h3", {}, "Request"), element("code", {}, shown.label));
    if (shown.text) parts.push(element("pre", {}, shown.text));
  }
  parts.push(...answers(operation));
  const line = curl(method, path, operation);
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard && navigator.clipboard.writeText(line));
  parts.push(element("h3", {}, "curl ", copy), element("pre", {}, line));
  return element("div", { class: "inside" }, ...parts);
}

function entry(item) {
  const { method, path, operation } = item;
  const made = element("details", { id: operation.operationId },
    element("summary", {}, element("span", { class: `method ${method}` }, method.toUpperCase()),
      element("code", {}, path), element("span", { class: "words" }, operation.summary)));
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(inside(method, path, operation));
  });
  return made;
}

function show(items, asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  const found = items.filter((item) => words.every((word) => item.text.includes(word)));
  const groups = new Map();
  for (const item of found) groups.set(item.tag, [...(groups.get(item.tag) || []), item]);
  const main = document.getElementById("operations");
  main.replaceChildren();
  for (const [tag, members] of groups) main.append(element("h2", {}, tag), ...members.map(entry));
  if (!found.length) main.append(element("p", {}, "Nothing matches."));
  document.getElementById("count").textContent = `${found.length} operations`;
}

async function start() {
  const answer = await fetch("/swagger/doc.json");
  description = await answer.json();
  document.getElementById("version").textContent = description.info.version;
  const items = [];
  for (const [path, operations] of Object.entries(description.paths))
    for (const method of METHODS)
      if (operations[method]) {
        const operation = operations[method];
        const types = JSON.stringify([operation.requestBody, operation.responses["200"], operation.responses["201"]]);
        items.push({ method, path, operation, tag: operation.tags[0],
          text: `${method} ${path} ${operation.summary} ${operation.description || ""} ${operation.tags[0]} ${types}`.toLowerCase() });
      }
  items.sort((a, b) => a.tag.localeCompare(b.tag) || a.path.localeCompare(b.path));
  const search = document.getElementById("search");
  search.value = new URLSearchParams(location.search).get("q") || "";
  search.addEventListener("input", () => show(items, search.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
  });
  show(items, search.value);
  const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted) { wanted.open = true; wanted.scrollIntoView(); }
}

start().catch((error) => { document.getElementById("operations").textContent = `The description could not be read: ${error}`; });
