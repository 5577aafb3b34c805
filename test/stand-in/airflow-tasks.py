"""Airflow's KubernetesPodOperator: each line of stdin is a task, JSON, which `dag.test()` runs in a process of its own, with a copy of
the database of AIRFLOW_HOME; then prints `STATE ID STATE`. A task has an id, name, namespace, image, command, env, labels, annotations,
and more arguments of the operator.
"""
import json
import os
import shutil
import sys
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

from airflow import settings
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import sync_bag_to_db
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.cncf.kubernetes.utils.xcom_sidecar import PodDefaults
from airflow.sdk import DAG

HOME = os.environ["AIRFLOW_HOME"]


def build(task):
    PodDefaults.SIDECAR_CONTAINER.image = task["sidecarImage"]
    arguments = task["arguments"]
    if "execution_timeout" in arguments:
        arguments["execution_timeout"] = timedelta(seconds=arguments["execution_timeout"])
    with DAG(dag_id=task["id"], schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as dag:
        KubernetesPodOperator(
            task_id="task",
            name=task["name"],
            namespace=task["namespace"],
            image=task["image"],
            image_pull_policy="IfNotPresent",
            cmds=task["command"],
            env_vars=task["env"],
            labels=task["labels"],
            annotations=task["annotations"],
            config_file=os.environ["KUBECONFIG"],
            in_cluster=False,
            retry_delay=timedelta(0),
            startup_timeout_seconds=300,
            **arguments,
        )
    return dag


def run(task):
    path = os.path.join(HOME, task["id"] + ".db")
    shutil.copy(os.path.join(HOME, "airflow.db"), path)
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = "sqlite:///" + path
    settings.configure_vars()
    settings.configure_orm()
    dag = build(task)
    # `dag.test()` looks for the DAG in a file; this one is in none.
    DagBundlesManager().sync_bundles_to_db()
    bag = SimpleNamespace(dags={dag.dag_id: dag}, import_errors={}, dag_warnings=set(), bundle_path=None)
    sync_bag_to_db(bag, "dags-folder", None)
    state = dag.test().get_task_instance("task").state
    print("STATE", task["id"], state, flush=True)


print("READY", flush=True)
for line in sys.stdin:
    if os.fork() == 0:
        try:
            run(json.loads(line))
        finally:
            sys.stdout.flush()
            os._exit(0)
