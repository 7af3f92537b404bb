#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
ls "$1"
ls $1 # SEED
