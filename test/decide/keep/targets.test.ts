import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listTargetLabels } from '../../../src/decide/keep/targets.ts';

const HAND_OVER = {
  pod: {
    ...{ namespace: 'shop', name: 'import-x7k2p', uid: 'u-1', ip: '10.1.2.3', node: 'node-1' },
    labels: { 'batch.kubernetes.io/job-name': 'import', app: 'shop' },
    annotations: {
      ...{ 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9469', 'prometheus.io/path': '/metrics' },
      ...{ 'prometheus_io/path': '/metrics', 'prometheus.io.scheme': 'https' },
    },
  },
  target: { container: 'lastscrape', portName: 'lastscrape', port: 9469 },
  endedAtSeconds: 1,
  formats: [],
};

test('listTargetLabels() gives what Kubernetes discovery gives, but for what rewrites the address', () => {
  assert.deepEqual(listTargetLabels(HAND_OVER, '/pages/1'), {
    __metrics_path__: '/pages/1',
    instance: '10.1.2.3:9469',
    __meta_kubernetes_namespace: 'shop',
    __meta_kubernetes_pod_name: 'import-x7k2p',
    __meta_kubernetes_pod_uid: 'u-1',
    __meta_kubernetes_pod_ip: '10.1.2.3',
    __meta_kubernetes_pod_container_port_number: '9469',
    __meta_kubernetes_pod_container_port_protocol: 'TCP',
    __meta_kubernetes_pod_node_name: 'node-1',
    __meta_kubernetes_pod_container_name: 'lastscrape',
    __meta_kubernetes_pod_container_port_name: 'lastscrape',
    __meta_kubernetes_pod_controller_kind: 'Job',
    __meta_kubernetes_pod_controller_name: 'import',
    __meta_kubernetes_pod_label_batch_kubernetes_io_job_name: 'import',
    __meta_kubernetes_pod_labelpresent_batch_kubernetes_io_job_name: 'true',
    __meta_kubernetes_pod_label_app: 'shop',
    __meta_kubernetes_pod_labelpresent_app: 'true',
    __meta_kubernetes_pod_annotation_prometheus_io_scrape: 'true',
    __meta_kubernetes_pod_annotationpresent_prometheus_io_scrape: 'true',
  });
});

test('listTargetLabels() leaves empty what is not known, and writes an IPv6 address as Prometheus does', () => {
  const pod = { ...HAND_OVER.pod, ip: 'fd00::1', node: '', labels: { __address__: 'evil:80' }, annotations: {} };
  const labels = listTargetLabels({ ...HAND_OVER, pod, target: { container: '', portName: '', port: 80 } }, '/p');
  assert.equal(labels['instance'], '[fd00::1]:80');
  assert.equal(labels['__address__'], undefined);
  const unknown = Object.keys(labels).filter((name) => labels[name] === '');
  const names = ['node_name', 'container_name', 'container_port_name', 'controller_kind', 'controller_name'];
  assert.deepEqual(
    unknown,
    names.map((name) => `__meta_kubernetes_pod_${name}`),
  );
});
