import { CurfewError, show } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import type { SchemaView } from "../../engine/schemas/schemas.ts";
import type { Identity } from "../access/auth.ts";
import { notFound } from "../http/failures.ts";
import { refusedField } from "../http/http-error.ts";
import { byKey, json, type Reply, type Route, type RouteContext, routesOf } from "../route.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import * as wire from "../wire/job-schemas.ts";
import { listedPage } from "../wire/pages.ts";

const route = routesOf({ tag: "schemas", scope: "tenant" });
const ADMIN = "/ojs/v1/admin/schemas";
/** The path of the binding (section 15), and of its clients. */
const PLAIN = "/ojs/v1/schemas";

function schemas({ engine }: RouteContext, identity: Identity) {
  return engine.schemas.as(byKey(identity));
}

function found(view: SchemaView | null, name: string): SchemaView {
  if (!view) throw notFound("schema", name);
  return view;
}

const reply = (status: number, view: SchemaView, more: object = {}) => {
  const fields = wire.schemaFields(view);
  return json(status, { ...fields, schema_info: { type: fields.type, version: fields.version }, ...more });
};

/** Under the path of the binding the name of a type may also be a uri. */
function typeIn({ type, name }: Readonly<Record<string, string>>): string {
  return type ?? name ?? "";
}

/** A uri has colons, a type has none. */
async function byName(name: string, { engine }: RouteContext): Promise<SchemaView> {
  return found(await (name.includes(":") ? engine.schemas.byUri(name) : engine.schemas.get(name)), name);
}

const listBy = (path: string) =>
  route("GET", path, "read", {
    summary: "List the types with schemas, by name",
    reply: wire.schemasReply,
    query: adminPageQuery,
    replies: { 200: "A page of types with their versions" },
    async run({ query }, { engine }) {
      const { items, pagination } = await listedPage(query, {
        usual: 100,
        list: (after, limit) => engine.schemas.list({ ...(after !== null && { after }), limit }),
        cursorOf: ({ type }) => type,
      });
      const schemas = items.map(wire.summaryFields);
      return json(200, { schemas, items: schemas, pagination });
    },
  });

const registerBy = (path: string) =>
  route("POST", path, "operate", {
    summary: "Register a version of a schema",
    reply: wire.schemaReply,
    body: wire.registerSchemaBody,
    replies: { 201: "It holds from now on", 409: "The version is known, or breaks the compatibility" },
    async run({ body, identity }, context) {
      const [type, version, schema] = [wire.typeOf(body), wire.versionIn(body), wire.schemaIn(body)];
      const options = { ...wire.rulesOf(body), ...(body.uri != null && { uri: body.uri }) };
      const view = await schemas(context, identity).put(type, version, schema, options);
      return reply(201, view, wire.keywordWarnings(view.schema));
    },
  });

const publishBy = (path: string) =>
  route("PUT", path, "operate", {
    summary: "Publish a schema: a new version, unless the newest one is the same",
    reply: wire.schemaReply,
    body: wire.putSchemaBody,
    replies: {
      200: "The newest version was the same",
      201: "A new version",
      409: "It breaks the compatibility",
    },
    async run({ params, body, identity }, context) {
      const type = wire.typeOf(body, typeIn(params));
      const { version, uri } = body;
      if (version != null)
        throw refusedField(
          "version",
          `${show(version)} cannot be chosen here: a publication counts on from the newest; write PUT ${path.replace(/:\w+$/, `${type}/${version}`)}`,
        );
      const options = { ...wire.rulesOf(body), ...(uri != null && { uri }) };
      const { isNew } = await schemas(context, identity).publishSchema(type, wire.schemaIn(body), options);
      const view = found(await context.engine.schemas.get(type), type);
      if (!isNew && uri != null && uri !== view.uri)
        throw refusedField(
          "uri",
          `${show(uri)} cannot replace ${show(view.uri)} of version ${view.version}, which has the same schema; leave it out`,
        );
      return reply(isNew ? 201 : 200, view, wire.keywordWarnings(view.schema));
    },
  });

const configureBy = (path: string) =>
  route("PATCH", path, "operate", {
    summary: "Change which jobs of a type are checked, and how its next version must fit",
    reply: wire.schemaReply,
    body: wire.schemaRulesBody,
    replies: { 200: "The newest version with its rules", 404: "The type has no schema" },
    async run({ params, body, identity }, context) {
      const type = typeIn(params);
      found(await context.engine.schemas.get(type), type);
      await schemas(context, identity).configure(type, wire.rulesOf(body));
      return reply(200, found(await context.engine.schemas.get(type), type));
    },
  });

const putBy = (path: string) =>
  route("PUT", path, "operate", {
    summary: "Register this version of a schema",
    reply: wire.schemaReply,
    body: wire.putSchemaBody,
    replies: { 201: "It holds from now on", 409: "The version is known, or breaks the compatibility" },
    async run({ params, body, identity }, context) {
      const [type, version] = [wire.typeOf(body, typeIn(params)), wire.versionIn(body, params.version ?? "")];
      const schema = wire.schemaIn(body);
      const options = { ...wire.rulesOf(body), ...(body.uri != null && { uri: body.uri }) };
      const view = await schemas(context, identity).put(type, version, schema, options);
      return reply(201, view, wire.keywordWarnings(view.schema));
    },
  });

const getNewest = (path: string) =>
  route("GET", path, "read", {
    summary: "The newest schema of a type, or the one with a uri",
    reply: wire.schemaReply,
    replies: { 200: "The schema", 404: "There is none" },
    run: async ({ params }, context) => reply(200, await byName(typeIn(params), context)),
  });

const versionsBy = (path: string) =>
  route("GET", path, "read", {
    summary: "The versions of a type's schema, from the oldest to the newest",
    reply: wire.schemaVersionsReply,
    replies: { 200: "The versions", 404: "The type has no schema" },
    async run({ params }, { engine }) {
      const type = typeIn(params);
      const [summary] = (await engine.schemas.list({ limit: 1, from: type })).filter(
        (each) => each.type === type,
      );
      if (!summary) throw notFound("schema", type);
      return json(200, wire.summaryFields(summary));
    },
  });

const getVersionBy = (path: string) =>
  route("GET", path, "read", {
    summary: "One version of a type's schema",
    reply: wire.schemaReply,
    replies: { 200: "The schema", 404: "There is none" },
    async run({ params }, { engine }) {
      const [type, version] = [typeIn(params), params.version ?? ""];
      return reply(200, found(await engine.schemas.get(type, version), `${type}@${version}`));
    },
  });

const checkBy = (path: string) =>
  route("POST", path, "read", {
    summary: "Compare a schema with the newest version, or check args; nothing is stored",
    reply: wire.schemaCheckReply,
    body: wire.checkSchemaBody,
    replies: { 200: "What does not fit", 404: "The type has no schema" },
    async run({ params, body }, { engine }) {
      const type = typeIn(params);
      if (body.schema == null && body.args == null)
        throw refusedField("schema", "it is missing; send a schema to compare, args to check, or both");
      if (body.args != null) found(await engine.schemas.get(type), type);
      const reasons =
        body.schema == null
          ? []
          : await engine.schemas.check(type, body.schema, body.compatibility ?? undefined);
      const misfit =
        body.args == null
          ? null
          : await engine.schemas.validate(type, body.args as readonly Json[], body.version ?? undefined);
      const said = misfit ? [...reasons, `args${misfit.at}: ${misfit.message}`] : reasons;
      return json(200, { type, compatible: reasons.length === 0, valid: misfit === null, reasons: said });
    },
  });

const removeBy = (path: string) =>
  route("DELETE", path, "operate", {
    summary: "Delete a version of a schema",
    reply: wire.schemaReply,
    replies: { 200: "It is deleted", 404: "There is none" },
    async run({ params, identity }, context) {
      const [type, version] = [typeIn(params), params.version ?? ""];
      return removed(
        found(await context.engine.schemas.get(type, version), `${type}@${version}`),
        identity,
        context,
      );
    },
  });

const removeByName = route("DELETE", `${PLAIN}/:name`, "operate", {
  summary: "Delete the schema with a uri",
  reply: wire.schemaReply,
  replies: { 200: "It is deleted", 404: "There is none" },
  async run({ params, identity }, context) {
    const name = params.name ?? "";
    if (!name.includes(":"))
      throw new CurfewError(
        "invalid_option",
        `uri: ${JSON.stringify(name)} is not a uri; name the version under ${ADMIN}`,
        {
          field: "uri",
        },
      );
    return removed(await byName(name, context), identity, context);
  },
});

async function removed(view: SchemaView, identity: Identity, context: RouteContext): Promise<Reply> {
  await schemas(context, identity).remove(view.type, view.version);
  return json(200, { ...wire.schemaFields(view), deleted: true });
}

const allBy = (path: string, type: string): readonly Route[] => [
  listBy(path),
  registerBy(path),
  versionsBy(`${path}/${type}/versions`),
  checkBy(`${path}/${type}/check`),
  publishBy(`${path}/${type}`),
  configureBy(`${path}/${type}`),
  putBy(`${path}/${type}/:version`),
  getNewest(`${path}/${type}`),
  getVersionBy(`${path}/${type}/:version`),
  removeBy(`${path}/${type}/:version`),
];

export const jobSchemaRoutes: readonly Route[] = [
  ...allBy(ADMIN, ":type"),
  ...allBy(PLAIN, ":name"),
  removeByName,
];
