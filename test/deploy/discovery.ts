// What Prometheus's Kubernetes discovery makes of pods, for file_sd to carry; after its source (2.42.0 and
// 3.8.0: discovery/kubernetes/pod.go, endpoints.go, endpointslice.go), and Kubernetes 1.36.3 for what is
// behind a Service (endpoints_controller.go, ShouldPodBeInEndpoints of k8s.io/endpointslice).

/** What of a pod discovery looks at. */
export type Pod = {
  readonly metadata: {
    name: string;
    namespace: string;
    readonly uid?: string;
    readonly labels: Record<string, string>;
    readonly annotations?: Record<string, string>;
    deletionTimestamp?: string;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: Container[];
    readonly initContainers?: Container[];
  };
  status: PodStatus;
};

export type Container = { name: string; readonly image: string; ports?: ContainerPort[] };
type ContainerPort = { readonly containerPort: number; readonly name?: string };

/** Phase, condition Ready (`unknown` before it is set), and address (empty until there is one). */
export type PodStatus = { readonly phase: string; readonly ready: string; readonly podIP: string };

/** A Service without labels, as the operator makes them. */
export type Service = {
  readonly name: string;
  readonly namespace: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly { readonly name: string; readonly port: number }[];
};

/** A target's labels before relabelling, `__address__` among them. */
export type Target = Readonly<Record<string, string>>;

/** Which discovery role finds what is behind a Service. */
export type EndpointRole = 'endpoints' | 'endpointslice';

/** Role pod: a target for each declared port, one without a port for a container that declares none. */
export function discoverPod(pod: Pod): Target[] {
  if (pod.status.podIP === '') return [];
  return listContainers(pod).flatMap(({ container, isInit }) => {
    const ports = container.ports ?? [];
    if (ports.length === 0) {
      const { name, image } = container;
      return [
        {
          ...podLabels(pod),
          __address__: pod.status.podIP,
          __meta_kubernetes_pod_container_name: name,
          __meta_kubernetes_pod_container_image: image,
          __meta_kubernetes_pod_container_init: String(isInit),
        },
      ];
    }
    return ports.map((port) => ({ ...podLabels(pod), ...portLabels(pod, container, port, isInit) }));
  });
}

/**
 * Role endpoints or endpointslice: a target for each port of the Service, and each other port behind it.
 * `knowsInit`: native sidecars too, as since Prometheus 3.
 */
export function discoverService(
  service: Service,
  pods: readonly Pod[],
  role: EndpointRole,
  knowsInit: boolean,
): Target[] {
  return pods
    .filter((pod) => isBehind(service, pod, role))
    .flatMap((pod) => {
      const containers = listContainers(pod).filter(({ isInit }) => knowsInit || !isInit);
      const ofService = {
        __meta_kubernetes_namespace: service.namespace,
        __meta_kubernetes_service_name: service.name,
      };
      const served = service.ports.map(({ name, port }) => {
        const owner = containers.find(({ container }) => container.ports?.some((each) => each.containerPort === port));
        const kind = role === 'endpoints' ? 'endpoint' : 'endpointslice';
        return {
          ...podLabels(pod),
          ...ofService,
          ...(owner && portLabels(pod, owner.container, { containerPort: port }, owner.isInit)),
          __address__: `${pod.status.podIP}:${port}`,
          [`__meta_kubernetes_${kind}_port_name`]: name,
          [`__meta_kubernetes_${kind}_address_target_kind`]: 'Pod',
          [`__meta_kubernetes_${kind}_address_target_name`]: pod.metadata.name,
        };
      });
      const others = containers.flatMap(({ container, isInit }) =>
        (container.ports ?? [])
          .filter(({ containerPort }) => !service.ports.some(({ port }) => port === containerPort))
          .map((port) => ({ ...podLabels(pod), ...ofService, ...portLabels(pod, container, port, isInit) })),
      );
      return [...served, ...others];
    });
}

// A pod that is being deleted leaves Endpoints at once, and a slice when it has ended.
function isBehind(service: Service, pod: Pod, role: EndpointRole): boolean {
  if (pod.metadata.namespace !== service.namespace) return false;
  if (['Succeeded', 'Failed'].includes(pod.status.phase) || pod.status.podIP === '') return false;
  if (role === 'endpoints' && pod.metadata.deletionTimestamp !== undefined) return false;
  return Object.entries(service.selector).every(([key, value]) => pod.metadata.labels[key] === value);
}

function listContainers(pod: Pod): { container: Container; isInit: boolean }[] {
  return [
    ...pod.spec.containers.map((container) => ({ container, isInit: false })),
    ...(pod.spec.initContainers ?? []).map((container) => ({ container, isInit: true })),
  ];
}

// Neither a deletion timestamp nor a container's state is among them.
function podLabels({ metadata, spec, status }: Pod): Target {
  const labels: Record<string, string> = {
    __meta_kubernetes_namespace: metadata.namespace,
    __meta_kubernetes_pod_name: metadata.name,
    __meta_kubernetes_pod_ip: status.podIP,
    __meta_kubernetes_pod_phase: status.phase,
    __meta_kubernetes_pod_ready: status.ready,
    __meta_kubernetes_pod_controller_kind: 'Job',
    ...(metadata.uid !== undefined && { __meta_kubernetes_pod_uid: metadata.uid }),
    ...(spec.nodeName !== undefined && { __meta_kubernetes_pod_node_name: spec.nodeName }),
    ...(metadata.labels['job-name'] && { __meta_kubernetes_pod_controller_name: metadata.labels['job-name'] }),
  };
  for (const [kind, values] of Object.entries({ label: metadata.labels, annotation: metadata.annotations ?? {} })) {
    for (const [key, value] of Object.entries(values)) {
      const name = key.replaceAll(/[^a-zA-Z0-9_]/g, '_');
      labels[`__meta_kubernetes_pod_${kind}_${name}`] = value;
      labels[`__meta_kubernetes_pod_${kind}present_${name}`] = 'true';
    }
  }
  return labels;
}

function portLabels(pod: Pod, { name, image }: Container, port: ContainerPort, isInit: boolean): Target {
  return {
    __address__: `${pod.status.podIP}:${port.containerPort}`,
    __meta_kubernetes_pod_container_name: name,
    __meta_kubernetes_pod_container_image: image,
    __meta_kubernetes_pod_container_port_name: port.name ?? '',
    __meta_kubernetes_pod_container_port_number: String(port.containerPort),
    __meta_kubernetes_pod_container_port_protocol: 'TCP',
    __meta_kubernetes_pod_container_init: String(isInit),
  };
}
