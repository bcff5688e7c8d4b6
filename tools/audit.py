"""Look the installed dependencies up in the database of known vulnerabilities; part of ``make lint``.

Fails where a dependency has a known vulnerability. Where the database cannot be reached nothing is known, which is said
and is no failure: checks must work offline.
"""

import json
import subprocess
import sys

#: seconds for the whole look-up
_PATIENCE = 300


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--format", "json"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        found = json.loads(run.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        found = []
    # a package that the database does not know, or an index that cannot be asked, comes back as skipped
    known = [package for package in found if "skip_reason" not in package]
    if not known:
        print("audit: the database of vulnerabilities cannot be reached (offline?); dependencies were NOT checked.")
        return 0
    weak = [(package, weakness) for package in known for weakness in package["vulns"]]
    for package, weakness in weak:
        mended = ", ".join(weakness["fix_versions"]) or "no version yet"
        print(f"audit: {package['name']} {package['version']}: {weakness['id']}, mended in {mended}")
    print(
        f"audit: {len(known)} packages looked up, {len(found) - len(known)} unknown, {len(weak)} known vulnerabilities"
    )
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
