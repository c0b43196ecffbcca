# shellcheck shell=bash
# The extension and hpj, into the Python that JupyterLab and the terminals of the space have. That lies in the image, so it ends with the application.

# What was installed, if it is what is wanted now.
installed() {
  [[ -f $MARK && $(<"$MARK") == "$PACKAGE $PACKAGE_SHA256" ]] && "$PYTHON" -c 'import hyperpod_jlab' 2>/dev/null
}

# pip WORDS...: what is imported gets compiled then, which is quicker.
pip() { "$PYTHON" -m pip "$@" --quiet --disable-pip-version-check --no-input --retries 1 --timeout 10; }
pip_install() { pip install --no-compile "$@" "${wheel}[$EXTRAS]"; }

# Our own wheel of the index has the checksum; what it needs and the image lacks is taken as the index has it.
from_index() {
  printf '%s%s\n' "$PACKAGE" "${PACKAGE_SHA256:+ --hash=sha256:$PACKAGE_SHA256}" >"$WORK/wanted"
  pip download --no-deps --only-binary :all: --dest "$WORK/package" --requirement "$WORK/wanted" ||
    { tell "$PACKAGE cannot be had from the package index, or does not have the SHA-256 that was set"; return 1; }
}

do_package() {
  local wheel
  MARK=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hyperpod_jlab.lifecycle
  if installed; then tell "$PACKAGE is there already"; return 0; fi
  rm -rf "$WORK/package"
  mkdir "$WORK/package" || return
  if [[ $PACKAGE == *==* ]]; then from_index || return; else fetch "$PACKAGE" "$PACKAGE_SHA256" "$WORK/package" || return; fi
  wheel=$(compgen -G "$WORK/package/hyperpod_jlab-*.whl") || { tell "$PACKAGE has no wheel of hyperpod_jlab"; return 1; }
  # Another build of the same version would count as installed.
  if "$PYTHON" -c 'import hyperpod_jlab' 2>/dev/null; then pip uninstall --yes hyperpod_jlab; fi
  # Without the index first: then it works without network, and is quick.
  if ! pip_install --no-index --find-links "$WORK/package"; then
    if [[ -f $WORK/package/SHA256SUMS ]]; then tell "$PACKAGE lacks a wheel that this image needs; see the log"; return 1; fi
    pip_install || { tell "what $PACKAGE needs cannot be installed; see the log"; return 1; }
  fi
  echo "$PACKAGE $PACKAGE_SHA256" >"$MARK"
  touch "$WORK/new"
  tell "$(basename "$wheel" .whl) is installed"
}
