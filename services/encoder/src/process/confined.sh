#!/bin/sh
# Runs a program on files of strangers: with nothing of our environment, at a low priority, and bound to end
# with its parent (a killed encoder leaves no ffmpeg behind). Keeps the process id.
set -eu
program=$(command -v "$1")
shift
if setpriv=$(command -v setpriv); then
  exec nice -n 10 "$setpriv" --pdeathsig KILL --no-new-privs env -i "$program" "$@"
fi
exec nice -n 10 env -i "$program" "$@"
