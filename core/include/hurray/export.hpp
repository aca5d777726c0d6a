#pragma once

/// `HURRAY_EXPORT` marks what the shared libraries show; everything else stays hidden.
#if defined(HURRAY_STATIC)
#define HURRAY_EXPORT
#elif defined(_WIN32)
#if defined(HURRAY_CORE_BUILDING) || defined(HURRAY_IO_BUILDING)
#define HURRAY_EXPORT __declspec(dllexport)
#else
#define HURRAY_EXPORT __declspec(dllimport)
#endif
#else
#define HURRAY_EXPORT __attribute__((visibility("default")))
#endif
