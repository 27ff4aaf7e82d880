// SPDX-License-Identifier: Apache-2.0

// Package policyfile reads a policy written in YAML.
//
// All errors of a file are found in one pass, those of its syntax and types here and those of its sense by
// [policy.Compile], and each is placed at file, line, column and field with a hint of what to write instead.
// What is accepted but worth saying comes as notices.
//
// The YAML is plain: one document, no tags, no directives, no merge keys; an alias may stand for a whole value. Scalars are
// read as they are written, so off, 30_000 and 1.10 need no quotes. Size, nesting and number of values are bounded.
package policyfile
