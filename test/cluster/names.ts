// Names of Services in a cluster that has no DNS, as a test's may be: a name server for which every name is one address.

import { type Cluster, type Container, RUN_LABEL } from './cluster.ts';
import { IMAGES } from './images.ts';
import { START_MS } from './scenario.ts';

/** Its argument is the address. TCP is for the probe. */
const NAMESERVER = `
const address = Buffer.from(process.argv[1].split('.').map(Number));
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (query, { port, address: to }) => {
  const end = query.indexOf(0, 12) + 5;
  const isA = query.readUInt16BE(end - 4) === 1;
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isA ? 1 : 0, 6);
  head.writeUInt16BE(0, 10);
  const answer = Buffer.concat([Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]), address]);
  socket.send(isA ? Buffer.concat([head, answer]) : head, port, to);
}).bind(53);
require('node:net').createServer((each) => each.destroy()).listen(53);`;

export function buildNameserver(address: string): Container {
  return {
    name: 'nameserver',
    image: IMAGES.job,
    command: ['/node', '-e', NAMESERVER, address],
    readinessProbe: { tcpSocket: { port: 53 }, periodSeconds: 1 },
    securityContext: { runAsUser: 0 },
  };
}

/** Has names of Services lead to this address, which is that of the only one asked for; nothing where there is a DNS. */
export async function openNames(cluster: Cluster, address: string): Promise<void> {
  // What a run left behind that was killed is no DNS.
  const found = ['get', 'service', '--namespace', 'kube-system', '--field-selector=metadata.name=kube-dns'];
  if ((await cluster.kubectl([...found, `--selector=!${RUN_LABEL}`, '--output=name'])) !== '') return;
  const [node] = JSON.parse(await cluster.read('/api/v1/nodes')).items;
  const kubelet = await cluster.read(`/api/v1/nodes/${node.metadata.name}/proxy/configz`);
  const namespace = await cluster.openNamespace('names');
  await namespace.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'names' },
    spec: { containers: [buildNameserver(address)] },
  });
  const { pod } = await namespace.untilPod('a name server', START_MS, ({ status }) =>
    (status.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  );
  const inSystem = (kind: string, apiVersion: string, fields: object) => ({
    apiVersion,
    kind,
    metadata: {
      name: 'kube-dns',
      namespace: 'kube-system',
      labels: { [RUN_LABEL]: cluster.run, 'kubernetes.io/service-name': 'kube-dns' },
    },
    ...fields,
  });
  const port = { name: 'dns', port: 53, protocol: 'UDP' };
  cluster.defer(() => cluster.kubectl(['delete', 'service,endpointslice', 'kube-dns', '--namespace', 'kube-system']));
  await cluster.apply(
    inSystem('Service', 'v1', { spec: { clusterIP: JSON.parse(kubelet).kubeletconfig.clusterDNS[0], ports: [port] } }),
    inSystem('EndpointSlice', 'discovery.k8s.io/v1', {
      addressType: 'IPv4',
      ports: [port],
      endpoints: [{ addresses: [pod.status.podIP], conditions: { ready: true } }],
    }),
  );
}
