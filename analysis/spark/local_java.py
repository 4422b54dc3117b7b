"""Starts Spark's Java on this machine directly.

Spark's own script starts another Java first, which only computes the command of the second one.
"""

import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from analysis.errors import AnalysisError
from analysis.spark.java import JavaHome

POLL_S = 0.02
# What Spark's script gives to Java 17 and later (`org.apache.spark.launcher.JavaModuleOptions`), but for an incubator
# module that only machine learning uses, and that some Javas lack.
OPENED = (
    *(f"java.base/java.{package}" for package in ("lang", "lang.invoke", "lang.reflect", "io")),
    *(f"java.base/java.{package}" for package in ("net", "nio", "util", "util.concurrent")),
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    *(f"java.base/sun.{package}" for package in ("nio.ch", "nio.cs", "security.action")),
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class Bridge(NamedTuple):
    """Where the process of Java waits for Python."""

    port: int
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        """By these variables pyspark uses this process instead of starting one."""
        return {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}


def start_java(
    java: JavaHome, jars: Path, folder: Path, options: str, settings: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", Path]:
    """Start it; returns the process, and the file in which it will write where it waits.

    The process ends when its standard input does, so also if this process is killed.
    """
    address_file = folder / f"bridge-{secrets.token_hex(4)}"
    pairs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [
            str(java.path / "bin" / "java"),
            *("-cp", f"{jars}/*"),
            *OPTIONS,
            *options.split(),
            "org.apache.spark.deploy.SparkSubmit",
            *pairs,
            "pyspark-shell",
        ],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address_file),
        },
        process_group=0,  # Ctrl-C is for Python, which ends Java
    )
    return process, address_file


def bridge_of(process: "subprocess.Popen[bytes]", address_file: Path) -> Bridge:
    """Wait until Java waits for Python; AnalysisError if it ends before."""
    while not address_file.is_file():
        if (code := process.poll()) is not None:
            raise AnalysisError(f"Java ended with exit code {code}.", "")
        time.sleep(POLL_S)
    content = address_file.read_bytes()
    port, length = (int.from_bytes(content[at : at + 4]) for at in (0, 4))
    return Bridge(port, content[8 : 8 + length].decode())
