// `npm exec -- node test/tools/make-schemas.ts`: makes fixtures/schemas/kubernetes-* from the API server of
// KUBECONFIG, and kyverno-* from Kyverno's Go module, as kubeconform reads them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { downloadDefinition, KYVERNO_DEFINITION } from './definitions.ts';
import { convert, type Schema, tidy } from './make-crd-schemas.ts';

const SCHEMAS = join(import.meta.dirname, '..', '..', 'fixtures', 'schemas');

/** Group, version and kind of what is kept. */
const KINDS = [
  ['', 'v1', 'Pod'],
  ['batch', 'v1', 'Job'],
  ['batch', 'v1', 'CronJob'],
  ['', 'v1', 'ServiceAccount'],
  ['networking.k8s.io', 'v1', 'NetworkPolicy'],
  ['rbac.authorization.k8s.io', 'v1', 'Role'],
  ['rbac.authorization.k8s.io', 'v1', 'RoleBinding'],
  ['admissionregistration.k8s.io', 'v1', 'MutatingAdmissionPolicy'],
  ['admissionregistration.k8s.io', 'v1', 'MutatingAdmissionPolicyBinding'],
  ['admissionregistration.k8s.io', 'v1', 'ValidatingAdmissionPolicy'],
  ['admissionregistration.k8s.io', 'v1', 'ValidatingAdmissionPolicyBinding'],
] as const;

const COMMAND = { encoding: 'utf8', cwd: tmpdir(), maxBuffer: 2 ** 26 } as const;

type Definitions = Readonly<Record<string, Schema>>;

/** What stands for a definition that JSON schema cannot say: both are written as a string or as a number. */
const OPEN_DEFINITIONS: Readonly<Record<string, Schema>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { anyOf: [{ type: 'string' }, { type: 'number' }] },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { anyOf: [{ type: 'string' }, { type: 'integer' }] },
};

/** The schema of one kind with what it refers to. A status is left out: no manifest has one. */
function findSchema(definitions: Definitions, group: string, version: string, kind: string): Schema {
  const [, definition] = Object.entries(definitions).find(([, each]) => isKind(each, group, version, kind)) ?? [];
  if (definition === undefined) throw new Error(`Cannot find ${group}/${version} ${kind} in the server's OpenAPI`);
  const { status, ...properties } = definition['properties'] as Schema;
  const schema = tidy({
    ...definition,
    properties: {
      ...properties,
      apiVersion: { enum: [group === '' ? version : `${group}/${version}`] },
      kind: { enum: [kind] },
    },
  });
  const needed = listReferences(schema, definitions, new Set());
  return {
    ...schema,
    definitions: Object.fromEntries(
      [...needed].toSorted().map((name) => [name, OPEN_DEFINITIONS[name] ?? tidy(definitions[name] as Schema)]),
    ),
  };
}

function isKind(definition: Schema, group: string, version: string, kind: string): boolean {
  const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as readonly Schema[];
  return kinds.some((each) => each['group'] === group && each['version'] === version && each['kind'] === kind);
}

function listReferences(schema: Schema, definitions: Definitions, found: Set<string>): Set<string> {
  for (const [, name = ''] of JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    if (!(name in OPEN_DEFINITIONS)) listReferences(tidy(definitions[name] as Schema), definitions, found);
  }
  return found;
}

function writeSchema(folder: string, name: string, schema: Schema): void {
  mkdirSync(join(SCHEMAS, folder), { recursive: true });
  writeFileSync(join(SCHEMAS, folder, name), `${JSON.stringify(schema)}\n`);
  process.stdout.write(`${join(SCHEMAS, folder, name)}\n`);
}

if (import.meta.main) {
  const { gitVersion } = JSON.parse(execFileSync('kubectl', ['get', '--raw', '/version'], COMMAND));
  const { definitions } = JSON.parse(execFileSync('kubectl', ['get', '--raw', '/openapi/v2'], COMMAND));
  for (const [group, version, kind] of KINDS) {
    const name = [kind.toLowerCase(), group.split('.')[0], version].filter((part) => part !== '').join('-');
    const folder = `kubernetes-${gitVersion.replace(/^v/, '')}`;
    writeSchema(folder, `${name}.json`, findSchema(definitions, group, version, kind));
  }

  const { name, text } = convert(downloadDefinition(KYVERNO_DEFINITION));
  const { properties, ...schema } = JSON.parse(text);
  const { status, ...rest } = properties;
  writeSchema(`kyverno-${KYVERNO_DEFINITION.version}`, name, { ...schema, properties: rest });
}
