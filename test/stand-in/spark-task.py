"""task.py once more as an application of Spark: its number is that of Spark's jobs, which Spark's own servlet serves."""
import json
import os
import signal
import sys
import time

from pyspark.sql import SparkSession

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
spark = SparkSession.builder.getOrCreate()
jobs = 0


def work():
    global jobs
    spark.sparkContext.parallelize([1], 1).count()
    jobs += 1


work()
end = time.monotonic() + float(os.environ.get("TASK_SECONDS", "8"))
try:
    while time.monotonic() < end:
        time.sleep(1)
        work()
finally:
    work()
    print(json.dumps({"final": jobs, "endedAtMs": time.time() * 1000}), flush=True)
code = int(os.environ.get("TASK_EXIT", "0"))
if code == 137:
    os._exit(code)
sys.exit(code)
