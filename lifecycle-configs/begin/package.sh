# shellcheck shell=bash
# The extension and hpj, into the Python that JupyterLab and the terminals of the space have. That lies in the image, so it ends with the application.

# What was installed, if it is what is wanted now.
installed() {
  [[ -f $MARK && $(<"$MARK") == "$PACKAGE $PACKAGE_SHA256" ]] && "$PYTHON" -c 'import hyperpod_jlab' 2>/dev/null
}

pip_install() { "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-input --retries 1 --timeout 10 "$@"; }

# Our own wheel of the index has the checksum; what it needs and the image lacks is taken as the index has it.
from_index() {
  printf '%s%s\n' "$PACKAGE" "${PACKAGE_SHA256:+ --hash=sha256:$PACKAGE_SHA256}" >"$WORK/wanted"
  "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-input --retries 1 --timeout 10 \
    --no-deps --only-binary :all: --dest "$WORK/package" --requirement "$WORK/wanted" ||
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
  # Without the index first: then it works without network, and is quick.
  if ! pip_install --no-index --find-links "$WORK/package" --force-reinstall --no-deps "$wheel" ||
    ! pip_install --no-index --find-links "$WORK/package" "${wheel}[$EXTRAS]"; then
    if [[ -f $WORK/package/SHA256SUMS ]]; then tell "$PACKAGE lacks a wheel that this image needs; see the log"; return 1; fi
    pip_install "${wheel}[$EXTRAS]" || { tell "what $PACKAGE needs cannot be installed; see the log"; return 1; }
  fi
  echo "$PACKAGE $PACKAGE_SHA256" >"$MARK"
  touch "$WORK/new"
  tell "$(basename "$wheel" .whl) is installed"
}
