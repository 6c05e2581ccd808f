/*
 * api_kinds.h - the words of an API table (stubs/api/NAME.api), as numbers: for the generator
 * that reads them, and in struct call_info for the readers of what it has made of them.
 */
#ifndef SHARED_API_KINDS_H
#define SHARED_API_KINDS_H

enum api_kind {
	API_VOID,
	API_INT,
	API_UINT,
	API_FLOAT,
	API_ENUM,
	API_DEVICE,
	API_DEVICEPTR,
	API_HANDLE,
	API_STRUCT,
	API_CALLBACK,
	API_JIT, /* an array of names of options; their values are the next parameter */
};

/* What the program holds in its hands for an object, and what becomes of that. */
enum api_holding {
	API_UNTRACKED, /* the driver's own handle: no object, or kept elsewhere */
	API_VIRTUAL,   /* the address of a record */
	API_REAL,      /* the driver's own, and the same one after a restart */
	API_LOST,      /* the driver's own; cannot be made again, so no checkpoint meanwhile */
};

enum api_direction {
	API_VALUE, /* no pointer */
	API_IN,
	API_OUT,
	API_INOUT,
	API_STRING,
	API_ADDR,
};

enum api_length {
	API_ONE,            /* one element */
	API_CONSTANT,       /* length elements */
	API_PARAMETER,      /* as many as parameter number `length` says */
	API_DEREFERENCED,   /* as many as parameter number `length` points to */
	API_LENGTH_UNKNOWN, /* the table cannot tell */
	API_IMAGE,          /* the data says: a program for the device */
	API_ELEMENTS,       /* as many of a datatype as a parameter says */
	API_RANKS,          /* one for each rank of the communicator, the remote ones if any */
	API_MEMBERS, /* one for each rank of the communicator, of this side's if there are two */
	API_SOURCES,      /* one for each neighbour that the rank gets something from */
	API_DESTINATIONS, /* one for each that it sends something to */
};

enum api_class {
	API_PURE,
	API_CREATE,
	API_DESTROY,
	API_STATE,
	API_THREAD,
	API_LAUNCH,
	API_COPY,
	API_SYNC,
	API_MESSAGE,
	API_COLLECTIVE,
	API_COMPLETE,
	API_WINDOW,
	API_FILE,
	API_TOOL,
	API_UNSAVED,
	API_MANUAL,
	API_UNSUPPORTED,
	API_DATA,
};

/* What a call's entry point does. */
enum api_way {
	API_PASS,       /* nothing but cross */
	API_TRANSLATE,  /* exchange handles for real ones on the way */
	API_RECORD,     /* leave it to the code that keeps records */
	API_BODY,       /* call what was written by hand */
	API_INNER_BODY, /* cross to what was written by hand */
	API_OPEN,       /* call what was written by hand, in which a thread may be stopped */
	API_REFUSE,
	API_VARIABLE, /* it has none: the name is a variable's, not a function's */
};

#endif
