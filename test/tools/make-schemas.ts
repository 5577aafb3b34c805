// `npm exec -- node test/tools/make-schemas.ts`: makes fixtures/schemas/ as kubeconform reads them: of
// prometheus-operator from its Go module, of Kubernetes from the API server of KUBECONFIG.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { downloadDefinition, OPERATOR_DEFINITIONS, OPERATOR_VERSION } from './definitions.ts';

const SCHEMAS = join(import.meta.dirname, '..', '..', 'fixtures', 'schemas');

/** Group, version and kind of what is kept. */
const KINDS = [
  ['', 'v1', 'Pod'],
  ['batch', 'v1', 'Job'],
  ['batch', 'v1', 'CronJob'],
  ['', 'v1', 'ServiceAccount'],
  ['', 'v1', 'Service'],
  ['apps', 'v1', 'Deployment'],
  ['networking.k8s.io', 'v1', 'NetworkPolicy'],
  ['rbac.authorization.k8s.io', 'v1', 'ClusterRole'],
  ['rbac.authorization.k8s.io', 'v1', 'ClusterRoleBinding'],
  ['rbac.authorization.k8s.io', 'v1', 'Role'],
  ['rbac.authorization.k8s.io', 'v1', 'RoleBinding'],
  ['admissionregistration.k8s.io', 'v1', 'MutatingAdmissionPolicy'],
  ['admissionregistration.k8s.io', 'v1', 'MutatingAdmissionPolicyBinding'],
  ['admissionregistration.k8s.io', 'v1', 'ValidatingAdmissionPolicy'],
  ['admissionregistration.k8s.io', 'v1', 'ValidatingAdmissionPolicyBinding'],
] as const;

const COMMAND = { encoding: 'utf8', cwd: tmpdir(), maxBuffer: 2 ** 26 } as const;

type Schema = { readonly [key: string]: unknown };

/** A schema as kubeconform needs it: no descriptions, and no field that is not named. */
function tidy(schema: Schema): Schema {
  if (schema['x-kubernetes-int-or-string'] === true) return { anyOf: [{ type: 'integer' }, { type: 'string' }] };
  const entries = Object.entries(schema)
    .filter(([key]) => key !== 'description' && key !== 'default' && !key.startsWith('x-kubernetes-'))
    .map(([key, value]): [string, unknown] => {
      if (key === 'properties') {
        return [
          key,
          Object.fromEntries(Object.entries(value as Schema).map(([name, each]) => [name, tidy(each as Schema)])),
        ];
      }
      return [key, key === 'items' || key === 'additionalProperties' ? tidy(value as Schema) : value];
    });
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true || 'additionalProperties' in schema;
  return Object.fromEntries(
    'properties' in schema && !isOpen ? [...entries, ['additionalProperties', false]] : entries,
  );
}

function convert(definition: string): { readonly name: string; readonly schema: Schema } {
  const { spec } = parse(definition);
  const [version] = spec.versions;
  const schema = tidy(version.schema.openAPIV3Schema);
  const properties = {
    ...(schema['properties'] as Schema),
    apiVersion: { enum: [`${spec.group}/${version.name}`] },
    kind: { enum: [spec.names.kind] },
    metadata: { type: 'object' },
  };
  const name = `${spec.names.singular}-${spec.group.split('.')[0]}-${version.name}.json`;
  return { name, schema: { ...schema, properties } };
}

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

for (const definition of OPERATOR_DEFINITIONS) {
  const { name, schema } = convert(downloadDefinition(definition));
  writeSchema(`prometheus-operator-${OPERATOR_VERSION}`, name, schema);
}

const { gitVersion } = JSON.parse(execFileSync('kubectl', ['get', '--raw', '/version'], COMMAND));
const { definitions } = JSON.parse(execFileSync('kubectl', ['get', '--raw', '/openapi/v2'], COMMAND));
for (const [group, version, kind] of KINDS) {
  const name = [kind.toLowerCase(), group.split('.')[0], version].filter((part) => part !== '').join('-');
  const folder = `kubernetes-${gitVersion.replace(/^v/, '')}`;
  writeSchema(folder, `${name}.json`, findSchema(definitions, group, version, kind));
}
