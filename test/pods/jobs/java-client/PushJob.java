import io.prometheus.metrics.core.metrics.Gauge;
import io.prometheus.metrics.exporter.pushgateway.PushGateway;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

/** The same job as push_job.py with the Java client, which pushes protobuf by default. */
public class PushJob {
  public static void main(String[] args) throws Exception {
    PrometheusRegistry registry = new PrometheusRegistry();
    Gauge rows = Gauge.builder().name("job_rows").help("Rows that were written.").register(registry);
    PushGateway gateway =
        PushGateway.builder()
            .address(args[0].replace("http://", ""))
            .job("java")
            .groupingKey("run", args[1])
            .registry(registry)
            .build();
    rows.set(1);
    gateway.push();
    Thread.sleep(Long.parseLong(args[3]));
    rows.set(Long.parseLong(args[2]));
    gateway.push();
    Runtime.getRuntime().halt(0);
  }
}
