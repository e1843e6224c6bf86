#!/bin/sh
# The operator's command line in an image.
exec node /app/embedded/src/cli/main.ts "$@"
