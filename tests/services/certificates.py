"""A certificate authority (CA) of the tests' own, made with openssl, and what it signs. Knows no server."""

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.services.keeper import shared
from tests.services.process import private_folder
from tests.services.require import find, require

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Vouches for names; ``file`` is its certificate, for those that shall believe it."""

    def __init__(self, folder: Path) -> None:
        require("openssl")
        self._folder = private_folder(folder)
        self.file, self._key = folder / "ca.crt", folder / "ca.key"
        subject = ("-subj", "/CN=Axon tests", "-addext", "basicConstraints=critical,CA:TRUE")
        _openssl("req", "-x509", *_CURVE, "-keyout", self._key, "-out", self.file, "-days", "2", *subject)
        self.file.chmod(0o644)

    def certificate(self, folder: Path, *names: str) -> tuple[Path, Path]:
        """Files of a certificate for names or IP addresses, and of its key, which servers' user can read."""
        certificate, key, request = (folder / f"tls.{end}" for end in ("crt", "key", "csr"))
        _openssl("req", "-new", *_CURVE, "-keyout", key, "-out", request, "-subj", f"/CN={names[0]}")
        extensions = folder / "tls.ext"
        extensions.write_text("subjectAltName=" + ",".join(map(_alternative, names)))
        signed_by = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", "2", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, *signed_by, "-out", certificate)
        certificate.chmod(0o644)
        key.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(key, "nobody", "nogroup")
        return certificate, key


def _alternative(name: str) -> str:
    return f"{'IP' if name[0].isdigit() else 'DNS'}:{name}"


@shared
def shared_authority() -> Authority:
    """That of this test run."""
    folder = Path(tempfile.mkdtemp(prefix="axon-ca-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Authority(folder)


def _openssl(*words: object) -> None:
    program = find("openssl")
    assert program is not None, "openssl is not installed"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
