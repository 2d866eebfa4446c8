"""The Helm chart: what it renders for several values, which values it refuses, and the commands of its test."""

from __future__ import annotations

import base64
import copy
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import PACKAGING, artefact, missing, require, running_server
from steps import chart as chart_step
from steps.release import LINUX_TARGETS, Release, Target

# The oldest supported version, and a recent one.
KUBERNETES_VERSIONS = ("1.30.0", "1.34.0")

POSTGRES = {"type": "postgres", "postgres": {"url": "postgres://restante:secret@database:5432/restante?sslmode=require"}}
NODE = {"ServiceAccount", "ConfigMap", "Service", "Deployment", "Pod"}

# Values, and the kinds of objects that they give.
CASES = {
    "default": ({}, NODE),
    "data directory": ({"storage": {"type": "file"}}, NODE | {"PersistentVolumeClaim"}),
    "existing claim": ({"storage": {"type": "file", "persistence": {"existingClaim": "mail"}}}, NODE),
    "postgres": ({"storage": POSTGRES, "replicas": 3}, NODE | {"Secret", "PodDisruptionBudget"}),
    "existing secrets": (
        {
            "storage": {"type": "postgres", "postgres": {"existingSecret": "database-app", "existingSecretKey": "uri"}},
            "auth": {"existingSecret": "keys", "existingSecretKey": "login"},
            "files": {"existingSecret": "restante-files"},
            "replicas": 3,
        },
        NODE | {"PodDisruptionBudget"},
    ),
    "ingress": (
        {
            "ingress": {
                "enabled": True,
                "className": "haproxy",
                "annotations": {"haproxy.org/timeout-server": "11m"},
                "hosts": ["mail.example.org", "mail.example.net"],
                "tls": [{"secretName": "restante-tls", "hosts": ["mail.example.org", "mail.example.net"]}],
            },
            "settings": {"web": {"basepath": "mail", "trustedproxies": "10.0.0.0/16"}},
        },
        NODE | {"Ingress"},
    ),
    "monitoring": ({"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}, NODE | {"ServiceMonitor"}),
    "users and tokens": (
        {
            "files": {"data": {"users": "", "tokens.toml": "", "greeting.html": "<p>Hello"}},
            "secretSettings": {"webhook": {"urls": ["https://ci.example.org/mail", "https://qa.example.org/mail"]}},
            "test": {"tokenSecret": "restante-test"},
        },
        NODE | {"Secret"},
    ),
    "numbers and lists": (
        {
            "settings": {
                "loglevel": "debug",
                "smtp": {"maxmessagebytes": 20480000, "acceptdomains": ["example.org", "example.net"], "strict": True},
                "storage": {"mailboxmsgcap": None},
            }
        },
        NODE,
    ),
    "sections that are null": (
        {
            "settings": {"web": None, "smtp": None, "storage": None},
            "secretSettings": {"web": None, "smtp": {"credentials": "ci:secret"}},
            "ingress": {"enabled": True},
        },
        NODE | {"Secret", "Ingress"},
    ),
    "outside by node ports": ({"mailService": {"enabled": True, "type": "NodePort", "nodePorts": {"smtp": 30025}}}, NODE),
    "all": (
        {
            "fullnameOverride": "mail",
            "image": {"repository": "registry.example.org/restante", "digest": "sha256:" + "0" * 64},
            "imagePullSecrets": [{"name": "registry"}],
            "storage": POSTGRES,
            "auth": {"secret": "0" * 64},
            "files": {"data": {"users": "", "tokens.toml": ""}},
            "secretSettings": {"smtp": {"credentials": "ci:secret"}},
            "extraEnv": [{"name": "TZ", "value": "UTC"}],
            "extraEnvFrom": [{"configMapRef": {"name": "other", "optional": True}}],
            "extraVolumes": [{"name": "ca", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
            "service": {"annotations": {"example.org/a": "b"}, "ports": {"smtp": 25, "pop3": 110, "imap": 143, "http": 80}},
            "mailService": {"enabled": True, "annotations": {"example.org/a": "b"}, "loadBalancerClass": "example.org/lb"},
            "ingress": {"enabled": True},
            "networkPolicy": {
                "enabled": True,
                "from": [{"namespaceSelector": {}}],
                "database": {"port": 6432, "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]},
                "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
            },
            "serviceMonitor": {"enabled": True, "tokenSecret": "restante-prometheus"},
            "autoscaling": {"enabled": True},
            "serviceAccount": {"annotations": {"example.org/a": "b"}},
            "podAnnotations": {"example.org/a": "b"},
            "podLabels": {"team": "qa"},
            "priorityClassName": "high",
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "mail", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
        },
        NODE
        | {"Secret", "Ingress", "NetworkPolicy", "ServiceMonitor", "PodDisruptionBudget", "HorizontalPodAutoscaler"},
    ),
}

# Values that are refused, and a part of the message.
REFUSED = {
    "several nodes in memory": ({"replicas": 2}, "several nodes need storage.type=postgres"),
    "an autoscaler with a data directory": (
        {"storage": {"type": "file"}, "autoscaling": {"enabled": True}},
        "several nodes need storage.type=postgres",
    ),
    "no URL": ({"storage": {"type": "postgres"}}, "needs storage.postgres.url or storage.postgres.existingSecret"),
    "two sources of the URL": (
        {"storage": {"type": "postgres", "postgres": {"url": "postgres://a", "existingSecret": "b"}}},
        "set either storage.postgres.url or storage.postgres.existingSecret",
    ),
    "two sources of files": ({"files": {"data": {"users": ""}, "existingSecret": "b"}}, "set either files.data or files.existingSecret"),
    "an address": ({"settings": {"smtp": {"addr": ":25"}}}, "settings.smtp.addr is determined by the value service.ports.smtp"),
    "a secret URL": ({"secretSettings": {"storage": {"url": "x"}}}, "secretSettings.storage.url is determined by"),
    "a short key": ({"auth": {"secret": "short"}}, "/auth/secret"),
    "an unknown store": ({"storage": {"type": "redis"}}, "/storage/type"),
    "an unknown value": ({"repliacs": 2}, "repliacs"),
    "a setting with a dot": ({"settings": {"smtp.strict": True}}, "smtp.strict"),
}


@pytest.fixture(scope="module")
def yaml():
    """PyYAML."""
    try:
        import yaml
    except ImportError:
        missing("PyYAML is not installed")
    return yaml


@pytest.fixture(scope="module")
def package(dist, version) -> Path:
    return artefact(dist, f"restante-chart-{version}.tgz")


@pytest.fixture(scope="module")
def program(dist, version, tmp_path_factory) -> Path:
    """The program for this machine, from its archive."""
    target = next(filter(lambda target: target.runs_here, map(Target, LINUX_TARGETS)), None)
    if target is None:
        missing("there is no program for this machine")
    name = f"restante-{version}-{target}"
    directory = tmp_path_factory.mktemp("program")
    with tarfile.open(artefact(dist, f"{name}.tar.gz")) as files:
        files.extract(f"{name}/restante", directory)
    return directory / name / "restante"


@pytest.fixture(scope="module")
def render(package, yaml, tmp_path_factory):
    """Renders the chart with these values. Returns the objects."""
    directory = tmp_path_factory.mktemp("values")

    def render(values: dict, kubernetes: str = KUBERNETES_VERSIONS[-1]) -> list[dict]:
        result = helm_template(package, values, kubernetes, directory)
        assert result.returncode == 0, result.stderr
        return [document for document in yaml.safe_load_all(result.stdout) if document]

    return render


@pytest.fixture(scope="module")
def render_notes(package, yaml, tmp_path_factory):
    """Renders NOTES.txt with these values. Helm prints it only with access to a cluster, so a copy of the chart has it in an object."""
    directory = tmp_path_factory.mktemp("notes")
    with tarfile.open(package) as files:
        files.extractall(directory)
    chart = directory / "restante"
    (chart / "templates" / "NOTES.txt").rename(chart / "notes.txt")
    (chart / "templates" / "notes.yaml").write_text('kind: Notes\ntext: {{ tpl (.Files.Get "notes.txt") . | toJson }}\n')

    def render(values: dict) -> str:
        result = helm_template(chart, values, KUBERNETES_VERSIONS[-1], directory)
        assert result.returncode == 0, result.stderr
        return one([document for document in yaml.safe_load_all(result.stdout) if document], "Notes")["text"]

    return render


def helm_template(package: Path, values: dict, kubernetes: str, directory: Path) -> subprocess.CompletedProcess:
    """Runs `helm template` for the release `ci`."""
    file = directory / "values.json"
    file.write_text(json.dumps(values))
    command = [require("helm"), "template", "ci", package, "--namespace", "mail", "--values", file, "--kube-version", kubernetes]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(params=CASES, scope="module")
def case(request, render) -> tuple[dict, list[dict], set[str]]:
    """The values of a case, the objects that the chart renders, and their expected kinds."""
    values, kinds = CASES[request.param]
    return values, render(copy.deepcopy(values)), kinds


@pytest.fixture(scope="module")
def decoder(tmp_path_factory) -> Path:
    """The program of `kubernetes/`, which decodes objects with the types of the Kubernetes API."""
    go = require("go")
    program = tmp_path_factory.mktemp("decoder") / "decoder"
    source = Path(__file__).parent / "kubernetes"
    result = subprocess.run([go, "build", "-o", program, "."], cwd=source, capture_output=True, text=True)
    if result.returncode != 0:
        missing(f"Go cannot build {source}: {result.stderr}")
    return program


def one(objects: list[dict], kind: str) -> dict:
    """Returns the only object of a kind."""
    (result,) = (item for item in objects if item["kind"] == kind)
    return result


def by_name(objects: list[dict], kind: str) -> dict[str, dict]:
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


def pod_template(objects: list[dict]) -> dict:
    return one(objects, "Deployment")["spec"]["template"]


def container(objects: list[dict]) -> dict:
    (result,) = pod_template(objects)["spec"]["containers"]
    return result


def environment(objects: list[dict], known: dict[str, dict[str, str]] | None = None) -> dict[str, str]:
    """Returns the variables of the container. `known` has Secrets and ConfigMaps that the chart does not create."""
    data = {name: item.get("data") or {} for name, item in by_name(objects, "ConfigMap").items()}
    secrets = {
        name: {key: base64.b64decode(value).decode() for key, value in item["data"].items()}
        for name, item in by_name(objects, "Secret").items()
    }
    secrets.update(known or {})
    variables = {}
    for source in container(objects)["envFrom"]:
        if "configMapRef" in source:
            reference = source["configMapRef"]
            variables.update(data.get(reference["name"], {}) if reference.get("optional") else data[reference["name"]])
        else:
            # The variables of `env` have the values of the same Secret.
            variables.update(secrets[source["secretRef"]["name"]])
    for variable in container(objects).get("env", []):
        if "value" in variable:
            variables[variable["name"]] = variable["value"]
        else:
            reference = variable["valueFrom"]["secretKeyRef"]
            variables[variable["name"]] = secrets[reference["name"]][reference["key"]]
    return variables


KNOWN_SECRETS = {
    "database-app": {"uri": "postgres://app:secret@database/app"},
    "keys": {"login": "0" * 64},
}


def test_helm_finds_no_faults(package):
    subprocess.run([require("helm"), "lint", "--strict", package, "--kube-version", KUBERNETES_VERSIONS[0]], check=True)


def test_the_package_has_the_version_of_the_program(package, version, yaml):
    with tarfile.open(package) as files:
        names = files.getnames()
        chart = yaml.safe_load(files.extractfile("restante/Chart.yaml").read())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert {"restante/values.yaml", "restante/values.schema.json", "restante/templates/deployment.yaml"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"restante"}


def test_two_packages_are_equal(tmp_path):
    contents = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (package,) = chart_step.build(Release(out=tmp_path / name, targets=[]))
        contents.append(package.read_bytes())
    assert contents[0] == contents[1]


def test_the_chart_renders_the_expected_objects(case):
    values, objects, kinds = case
    assert {item["kind"] for item in objects} == kinds
    names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(names) == len(set(names))
    for item in objects:
        assert item["apiVersion"]
        assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", item["metadata"]["name"])
        for value in item["metadata"]["labels"].values():
            assert re.fullmatch("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)


def test_the_types_of_the_api_have_every_field(case, decoder, yaml):
    _, objects, _ = case
    text = yaml.safe_dump_all(objects)
    result = subprocess.run([decoder, "ServiceMonitor"], input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == sum(item["kind"] != "ServiceMonitor" for item in objects)


def test_the_oldest_supported_cluster_gets_the_same_objects(render):
    values, kinds = CASES["all"]
    assert {item["kind"] for item in render(values, KUBERNETES_VERSIONS[0])} == kinds


def test_selectors_select_the_nodes_and_not_the_test(case):
    _, objects, _ = case
    node = pod_template(objects)["metadata"]["labels"]
    test = one(objects, "Pod")["metadata"]["labels"]
    selectors = [one(objects, "Deployment")["spec"]["selector"]["matchLabels"]]
    selectors += [service["spec"]["selector"] for service in by_name(objects, "Service").values()]
    for kind, field in [("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")]:
        selectors += [item["spec"][field]["matchLabels"] for item in by_name(objects, kind).values()]
    for constraint in pod_template(objects)["spec"].get("topologySpreadConstraints", []):
        selectors.append(constraint["labelSelector"]["matchLabels"])
    for selector in selectors:
        assert selector
        assert selector.items() <= node.items()
        assert not selector.items() <= test.items()


def test_references_name_objects_of_the_chart_or_of_the_values(case):
    values, objects, _ = case
    pod = pod_template(objects)["spec"]
    text = json.dumps(values)
    for volume in pod["volumes"]:
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            assert name in by_name(objects, "PersistentVolumeClaim") or name in text
        if "secret" in volume:
            name = volume["secret"]["secretName"]
            assert name in by_name(objects, "Secret") or name in text
    assert {mount["name"] for mount in container(objects)["volumeMounts"]} <= {volume["name"] for volume in pod["volumes"]}
    assert pod["serviceAccountName"] in by_name(objects, "ServiceAccount")
    ports = {port["name"]: port["containerPort"] for port in container(objects)["ports"]}
    assert ports == {"smtp": 2500, "pop3": 1100, "imap": 1143, "http": 9000}
    services = by_name(objects, "Service")
    for service in services.values():
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(ports)
    for ingress in by_name(objects, "Ingress").values():
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                assert backend["port"]["name"] in {port["name"] for port in services[backend["name"]]["spec"]["ports"]}
    for autoscaler in by_name(objects, "HorizontalPodAutoscaler").values():
        assert autoscaler["spec"]["scaleTargetRef"]["name"] in by_name(objects, "Deployment")
        assert "replicas" not in one(objects, "Deployment")["spec"]


def test_pods_comply_with_the_restricted_standard(case):
    _, objects, _ = case
    for pod in (pod_template(objects)["spec"], one(objects, "Pod")["spec"]):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for item in [*pod.get("initContainers", []), *pod["containers"]]:
            assert item["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert item["resources"]["limits"] and item["resources"]["requests"]


def test_nodes_have_probes(case):
    _, objects, _ = case
    node = container(objects)
    paths = {probe: node[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}


def test_only_nodes_with_a_common_store_run_side_by_side(case):
    values, objects, _ = case
    is_postgres = values.get("storage", {}).get("type") == "postgres"
    strategy = one(objects, "Deployment")["spec"]["strategy"]["type"]
    assert strategy == ("RollingUpdate" if is_postgres else "Recreate")


def test_the_program_accepts_the_rendered_settings(case, program, tmp_path):
    _, objects, _ = case
    variables = environment(objects, KNOWN_SECRETS)
    files = tmp_path / "config"
    files.mkdir()
    for name, secret in by_name(objects, "Secret").items():
        if name.endswith("-files"):
            for file, content in secret["data"].items():
                (files / file).write_bytes(base64.b64decode(content))
    variables = {name: value.replace("/config/", f"{files}/") for name, value in variables.items()}
    variables["RESTANTE_CONFIG"] = str(PACKAGING / "container.toml")
    result = subprocess.run([program, "config", "check"], env=variables, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    effective = dict(re.findall(r'(?m)^([a-z0-9.]+) = "(.*?)" ', result.stdout))
    secret = {"storage.url", "auth.secret", "webhook.urls", "smtp.credentials"}
    for name, value in variables.items():
        setting = name.removeprefix("RESTANTE_").lower().replace("_", ".")
        if name.startswith("RESTANTE_") and setting not in {"config", *secret}:
            assert effective[setting] in (value, f"/{value}"), name


@pytest.mark.parametrize(
    "name, variables",
    [
        ("default", {"RESTANTE_STORAGE_TYPE": "memory", "RESTANTE_STORAGE_RETENTIONPERIOD": "72h"}),
        ("data directory", {"RESTANTE_STORAGE_TYPE": "file"}),
        ("postgres", {"RESTANTE_STORAGE_TYPE": "postgres", "RESTANTE_STORAGE_URL": POSTGRES["postgres"]["url"]}),
        ("existing secrets", {"RESTANTE_STORAGE_URL": "postgres://app:secret@database/app", "RESTANTE_AUTH_SECRET": "0" * 64}),
        ("ingress", {"RESTANTE_WEB_HOSTS": "mail.example.org,mail.example.net", "RESTANTE_WEB_TRUSTEDPROXIES": "10.0.0.0/16"}),
        ("users and tokens", {"RESTANTE_AUTH_USERS": "/config/users", "RESTANTE_AUTH_TOKENS": "/config/tokens.toml"}),
        ("users and tokens", {"RESTANTE_WEBHOOK_URLS": "https://ci.example.org/mail,https://qa.example.org/mail"}),
        ("numbers and lists", {"RESTANTE_LOGLEVEL": "debug", "RESTANTE_SMTP_MAXMESSAGEBYTES": "20480000"}),
        ("numbers and lists", {"RESTANTE_SMTP_ACCEPTDOMAINS": "example.org,example.net", "RESTANTE_SMTP_STRICT": "true"}),
        ("all", {"RESTANTE_SMTP_CREDENTIALS": "ci:secret", "RESTANTE_AUTH_SECRET": "0" * 64, "TZ": "UTC"}),
    ],
)
def test_values_become_variables(render, name, variables):
    rendered = environment(render(CASES[name][0]), KNOWN_SECRETS)
    assert variables.items() <= rendered.items()


def test_a_setting_that_is_null_is_left_out(render):
    assert "RESTANTE_STORAGE_MAILBOXMSGCAP" not in environment(render(CASES["numbers and lists"][0]))


def test_nodes_on_postgres_share_a_generated_key(render):
    variables = environment(render(CASES["postgres"][0]))
    assert re.fullmatch("[A-Za-z0-9]{64}", variables["RESTANTE_AUTH_SECRET"])


def test_a_change_of_a_setting_restarts_the_nodes(render):
    def checksum(values: dict) -> str:
        return pod_template(render(values))["metadata"]["annotations"]["checksum/settings"]

    assert checksum({}) == checksum({})
    assert checksum({}) != checksum({"settings": {"smtp": {"strict": True}}})
    assert checksum({}) != checksum({"secretSettings": {"webhook": {"secret": "x"}}})


def test_an_ingress_forwards_the_base_path(render):
    objects = render(CASES["ingress"][0])
    rules = one(objects, "Ingress")["spec"]["rules"]
    assert [(rule["host"], rule["http"]["paths"][0]["path"]) for rule in rules] == [
        ("mail.example.org", "/mail"),
        ("mail.example.net", "/mail"),
    ]


def test_monitors_find_each_node_under_the_job_of_the_rules(render):
    objects = render(CASES["monitoring"][0])
    monitor = one(objects, "ServiceMonitor")
    service = one(objects, "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert f'job="{job}"' in (PACKAGING / "prometheus" / "restante.rules.yml").read_text()


def test_monitoring_verifies_the_certificate_as_the_values_say(render):
    tls = {"ca": {"secret": {"name": "restante-tls", "key": "ca.crt"}}, "serverName": "mail.example.org"}
    values = {"serviceMonitor": {"enabled": True, "tlsConfig": tls}, "settings": {"web": {"tlsenabled": True}}}
    (endpoint,) = one(render(values), "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", tls)
    (endpoint,) = one(render(CASES["monitoring"][0]), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scheme"] == "http"
    assert "tlsConfig" not in endpoint


@pytest.mark.parametrize("seconds", [5, 20])
def test_a_node_has_time_to_shut_down_after_the_hook(render, seconds):
    objects = render({"preStopSeconds": seconds})
    assert container(objects)["lifecycle"]["preStop"]["sleep"]["seconds"] == seconds
    # The systemd unit has the time of a shutdown too.
    (shutdown,) = re.findall(r"(?m)^TimeoutStopSec=(\d+)$", (PACKAGING / "restante.service").read_text())
    assert pod_template(objects)["spec"]["terminationGracePeriodSeconds"] == seconds + int(shutdown)


@pytest.mark.parametrize(
    "base_path, path", [("", ""), ("mail", "/mail"), ("/mail/", "/mail"), ("/a/b", "/a/b"), (2026, "/2026"), (None, "")]
)
def test_addresses_contain_the_base_path(render, render_notes, base_path, path):
    values = {"settings": {"web": {"basepath": base_path}}, "ingress": {"enabled": True}}
    notes = render_notes(values)
    assert re.findall(r"https?://(\S+)", notes) == [
        f"ci-restante.mail.svc:9000{path}",
        f"mail.example.org{path}/",
        f"localhost:9000{path}/.",
    ]
    (rule,) = one(render(values), "Ingress")["spec"]["rules"]
    assert [item["path"] for item in rule["http"]["paths"]] == [path or "/"]


def test_a_network_policy_admits_the_test(render):
    objects = render(CASES["all"][0])
    peers = one(objects, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert one(objects, "Pod")["metadata"]["labels"] in [peer.get("podSelector", {}).get("matchLabels") for peer in peers]


def test_web_over_tls_changes_probes_and_service(render):
    objects = render({"settings": {"web": {"tlsenabled": True, "tlscert": "self-signed"}}})
    assert container(objects)["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert {port.get("appProtocol") for port in one(objects, "Service")["spec"]["ports"]} == {None, "https"}


@pytest.mark.parametrize("values, message", REFUSED.values(), ids=REFUSED)
def test_values_that_contradict_each_other_are_refused(package, tmp_path, values, message):
    result = helm_template(package, values, KUBERNETES_VERSIONS[-1], tmp_path)
    assert result.returncode != 0
    assert message in result.stderr


def test_the_commands_of_the_test_send_and_find_a_message(render, program):
    pod = one(render({}), "Pod")["spec"]
    (send,), (wait,) = pod["initContainers"], pod["containers"]
    with running_server([program], env={}) as (smtp, url):

        def run(item: dict, run_id: str, **replaced: str) -> int:
            addresses = {"http://ci-restante:9000": url, "ci-restante:2500": f"127.0.0.1:{smtp}", "$(RUN)": run_id, **replaced}
            arguments = item["args"]
            for old, new in addresses.items():
                arguments = [argument.replace(old, new) for argument in arguments]
            assert not any("ci-restante" in argument or "$(" in argument for argument in arguments)
            return subprocess.run([program, *arguments], env={}).returncode

        first, second = "6f1c0b8e-5d2a-4f2e-9a43-0d5b1f0c7e11", "6f1c0b8e-5d2a-4f2e-9a43-0d5b1f0c7e12"
        assert run(send, first) == 0
        assert run(wait, first) == 0
        # A message of an earlier run does not count.
        assert run(wait, second, **{"--timeout=60s": "--timeout=1s"}) == 1


def test_the_schema_and_the_values_have_the_same_keys(yaml):
    values = yaml.safe_load((chart_step.SOURCE / "values.yaml").read_text())
    schema = json.loads((chart_step.SOURCE / "values.schema.json").read_text())

    def compare(schema: dict, values: dict, path: str) -> None:
        assert set(schema["properties"]) == set(values), path
        for name, item in schema["properties"].items():
            if "properties" in item:
                compare(item, values[name], f"{path}.{name}")

    # Helm adds this key.
    del schema["properties"]["global"]
    compare(schema, values, "")


def test_every_value_is_documented():
    """A comment precedes each value at the top, follows it, or begins the group of lines that it is in."""
    lines = (chart_step.SOURCE / "values.yaml").read_text().splitlines()
    undocumented = []
    for index, line in enumerate(lines):
        if re.match("[a-zA-Z]+:", line):
            first = max(number for number in range(index + 1) if number == 0 or not lines[number - 1].strip())
            neighbors = [lines[first], lines[index - 1], *lines[index + 1 : index + 2]]
            if not any(text.strip().startswith("#") for text in neighbors):
                undocumented.append(line)
    assert undocumented == []
