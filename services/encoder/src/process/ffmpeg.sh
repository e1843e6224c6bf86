#!/bin/sh
# What fluent-ffmpeg takes for ffmpeg.
exec "${0%/*}/confined.sh" ffmpeg "$@"
