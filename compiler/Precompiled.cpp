// Carries the precompiled header (Precompiled.h).
