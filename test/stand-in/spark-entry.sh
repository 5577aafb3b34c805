#!/bin/sh
# The entrypoint of a Spark image: what Spark's own does of `driver` and `executor`, without bash.
set -eu
role=$1
shift
run="/usr/lib/jvm/bin/java -cp /opt/spark/conf:/opt/spark/jars/*"
# The modules that Spark's own launcher opens.
for each in lang lang.invoke lang.reflect io net nio util util.concurrent util.concurrent.atomic; do
  run="$run --add-opens=java.base/java.$each=ALL-UNNAMED"
done
for each in $(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p'); do run="$run $each"; done
for each in nio.ch nio.cs security.action util.calendar; do run="$run --add-opens=java.base/sun.$each=ALL-UNNAMED"; done
case $role in
  driver)
    # By its address: the name of its Service wants a DNS.
    exec $run -Xmx640m org.apache.spark.deploy.SparkSubmit --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.driver.host=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"
    ;;
  executor)
    exec $run -Xmx"$SPARK_EXECUTOR_MEMORY" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
      --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
