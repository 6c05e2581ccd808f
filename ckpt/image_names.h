/*
 * image_names.h - an index of what an image has by a path: objects and open files. A restart asks for each of them
 * by its path, and there may be tens of thousands.
 */
#ifndef CKPT_IMAGE_NAMES_H
#define CKPT_IMAGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "ckpt/image_read.h"

/* The number (from 1) of the first object named @path behind number @after (0: of all); 0: there is none, or no more.
 * As often as wanted, this takes as long as there are objects of that name. */
uint32_t image_object_named(const struct image *img, const char *path, uint32_t after);

/* The same of open files (IMAGE_NOTE_DESCRIPTIONS). */
uint32_t image_description_named(const struct image *img, const char *path, uint32_t after);

/* For image_read.c: @img has its notes and strings. */
void image_names_make(struct image *img);
void image_names_free(struct image *img);

#endif
