"""Whether an SBOM says what it should, in both its forms, and both the same.

usage: sbom_check.py <package to compare with, or -> <its name without .spdx.json> <program>...
"""

import json
import re
import subprocess
import sys


def fail(text):
    sys.exit(f"{sys.argv[2]}: {text}")


def expect(true, text):
    if not true:
        fail(text)


deb, path, *programs = sys.argv[1:]
with open(path + ".spdx.json") as file:
    spdx = json.load(file)
with open(path + ".cdx.json") as file:
    cyclonedx = json.load(file)

# Every reference leads somewhere.
known = {spdx["SPDXID"]} | {p["SPDXID"] for p in spdx["packages"]}
for relation in spdx["relationships"]:
    expect({relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, relation)
known = {cyclonedx["metadata"]["component"]["bom-ref"]}
known |= {c["bom-ref"] for c in cyclonedx["components"]}
for dependency in cyclonedx["dependencies"]:
    expect({dependency["ref"], *dependency["dependsOn"]} <= known, dependency)

# Both name the same packages and programs.
urls = {r["referenceLocator"] for p in spdx["packages"] for r in p.get("externalRefs", [])}
expect(urls == {c["purl"] for c in cyclonedx["components"] if "purl" in c}, "they differ")
hashes = {p["name"]: p["checksums"][0]["checksumValue"] for p in spdx["packages"]
          if "checksums" in p}
expect(set(hashes) == set(programs), "programs are missing")
for component in cyclonedx["components"]:
    if component["name"] in programs:
        expect(component["hashes"][0]["content"] == hashes[component["name"]], "hashes differ")

# What is only headers has no other trace than this list; the rest dpkg knows too.
names = {c["name"] for c in cyclonedx["components"]}
expect({"libboost1.81-dev", "libssl3", "libprometheus-cpp-core1.0"} <= names, "parts are missing")
if deb != "-":
    depends = subprocess.run(["dpkg-deb", "--field", deb, "Depends"], check=True, text=True,
                             capture_output=True).stdout
    for name in re.findall(r"([a-z0-9][a-z0-9+.-]+)(?: \([^)]*\))?(?:, |$)", depends.strip()):
        expect(name.removesuffix("-fmt9") in names, f"{name} is missing")
